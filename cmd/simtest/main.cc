#include "cmd/simtest/command.h"

int main(int argc, char** argv) { return fairlead::simtest::RunCommand(argc, argv); }
