# Every outside library the project uses, found once. docs/dependencies.md says what each is for.
find_package(Threads REQUIRED)
find_package(absl REQUIRED)
find_package(Protobuf REQUIRED)  # module mode: Debian ships no protobuf-config
find_package(CURL REQUIRED)
find_package(OpenSSL REQUIRED)
find_package(ZLIB REQUIRED)  # cmd/fairlead: journals
find_package(yaml-cpp REQUIRED)
find_package(simdjson REQUIRED)
find_package(GTest REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(RE2 REQUIRED IMPORTED_TARGET re2)
# It asks for -pthread, with which no file may use headers that were precompiled without.
set_property(TARGET PkgConfig::RE2 PROPERTY INTERFACE_COMPILE_OPTIONS)
find_package(Boost 1.81 REQUIRED)  # headers alone: Heap, PFR in journal/, and Beast and Asio in server/
find_package(nlohmann_json REQUIRED)  # sim/world and tests/differential
pkg_check_modules(GRPC REQUIRED IMPORTED_TARGET grpc++)  # remote-plugins
find_program(GRPC_CPP_PLUGIN grpc_cpp_plugin REQUIRED)
set_property(TARGET PkgConfig::GRPC PROPERTY INTERFACE_COMPILE_OPTIONS)  # as of RE2
pkg_check_modules(PROMETHEUS REQUIRED IMPORTED_TARGET prometheus-cpp-core)
pkg_check_modules(TCMALLOC REQUIRED IMPORTED_TARGET libtcmalloc_minimal)  # of programs, not of libraries
pkg_check_modules(TCMALLOC_SAMPLING REQUIRED IMPORTED_TARGET libtcmalloc)  # of cmd/main, as the next
pkg_check_modules(PROFILER REQUIRED IMPORTED_TARGET libprofiler)
