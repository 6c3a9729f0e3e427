# SPDX-License-Identifier: Apache-2.0
spanker_fuzzer(backend_netlink SOURCES backend_netlink.cpp LIBS spanker_backend_kernel PkgConfig::libnl)
