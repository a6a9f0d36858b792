// Types whose members cannot be known: each is to be refused with a text that says what to do. Compiled once with each
// TAIYEN_CASE, and without: that is what is taken.
#include "taiyen/types.hpp"

struct item {
    item *next;
};
struct reference {
    long number;
    item &of;
};
struct base {
    item *first;
};
struct derived : base {
    item *second;
};
struct unnamed_union {
    long kind;
    union {
        item *one;
        long number;
    };
};
union variant {
    item *one;
    long number;
};
struct named_union {
    long kind;
    variant value;
};
struct open_array {
    long count;
    item *all[0];
};
struct odd_members { // all of which are taken
    unsigned kind : 3;
    bool marked : 1;
    volatile long number;
    item *volatile first;
    item *const second;
    const volatile item third;
    char text[20];
    item *volatile many[3];
    int : 5;
    item *last;
};

int main() {
    taiyen::descriptor_of<odd_members>();
#ifdef TAIYEN_CASE
    taiyen::descriptor_of<TAIYEN_CASE>();
#endif
}
