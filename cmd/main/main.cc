// Fairlead's own program: the command line with the built-in plugins.
#include "cmd/main/command_line.h"

int main(int argc, char** argv) { return fairlead::cmd::Main(argc, argv); }
