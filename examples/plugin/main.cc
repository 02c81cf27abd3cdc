// Fairlead with DriverVersion and NotBefore beside its own plugins.
#include "cmd/main/command_line.h"
#include "driver_version.h"
#include "not_before.h"

int main(int argc, char** argv) {
  using example::DriverVersion;
  using example::NotBefore;
  return fairlead::cmd::Main(
      argc, argv,
      {{DriverVersion::kName, DriverVersion::Make}, {NotBefore::kName, NotBefore::Make}});
}
