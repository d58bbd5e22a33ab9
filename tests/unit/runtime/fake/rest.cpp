// Every other symbol of the library's table: does nothing, and says that it is done. SPDX-License-Identifier:
// Apache-2.0
#include "runtime/driver/symbols.h"

#define FAKE_TEXT_OF(name) #name
#define FAKE_TEXT(name) FAKE_TEXT_OF(name)

extern "C" int fake_done() {
    return 0;
}

#define FAKE_SYMBOL(name)                                                                                              \
    asm(".weak " FAKE_TEXT(name) "\n.type " FAKE_TEXT(name) ", @function\n.set " FAKE_TEXT(name) ", fake_done\n");
CUBRIDGE_CUDA_SYMBOLS(FAKE_SYMBOL, FAKE_SYMBOL)
