/* What a program of plain C expects of the library. */
#pragma once

#include <stdio.h>
#include <stdlib.h>

#define MUST(condition)                                                                                                \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #condition, ty_error_text());                       \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)
