// Fairlead with DriverVersion beside its own plugins.
#include "cmd/main/command_line.h"
#include "driver_version.h"

int main(int argc, char** argv) {
  using example::DriverVersion;
  return fairlead::cmd::Main(argc, argv, {{DriverVersion::kName, DriverVersion::Make}});
}
