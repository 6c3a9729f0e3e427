# SPDX-License-Identifier: Apache-2.0
#
# Everything the tree needs from outside, as imported targets. tools/packages.sh names the Debian packages.

set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(libsystemd REQUIRED IMPORTED_TARGET libsystemd>=252) # PkgConfig::libsystemd
pkg_check_modules(libnl REQUIRED IMPORTED_TARGET libnl-3.0 libnl-genl-3.0) # PkgConfig::libnl, the daemon only
find_package(fmt REQUIRED) # fmt::fmt
find_package(nlohmann_json REQUIRED) # nlohmann_json::nlohmann_json
find_package(CLI11 REQUIRED) # CLI11::CLI11
find_package(tl-expected REQUIRED) # tl::expected
find_package(OpenSSL REQUIRED COMPONENTS Crypto) # OpenSSL::Crypto, SHA-256 of weights in the daemon
if(BUILD_TESTING)
    find_package(GTest REQUIRED) # GTest::gtest, GTest::gmock
endif()
