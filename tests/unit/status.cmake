# SPDX-License-Identifier: Apache-2.0
spanker_test(status_table SOURCES status_table.cpp LIBS spanker_uapi)
