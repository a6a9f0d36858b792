/* A library that fills variables of its own at its first use, and uses them from then on. */
#ifndef TAIYEN_TESTS_LAZY_H
#define TAIYEN_TESTS_LAZY_H
#ifdef __cplusplus
extern "C" {
#endif

struct lazy_cache {
    const char *variable;     /* its name, or a part of it */
    void (*prepare)(void);    /* NULL; else what it makes as it is loaded, and which leads to the cache later */
    void (*use)(char filler); /* fills the cache, which is made first where there is none */
    char (*look)(void);       /* what it holds: 0 nothing or something torn */
    void (*forget)(void);     /* frees it */
    void (*abandon)(void);    /* leads nowhere any more, as in a new process */
};
#define LAZY_CACHES 8
#define LAZY_DIRECT_CACHES 5 /* the first ones, which variables lead to and no other memory */
extern const struct lazy_cache lazy_caches[LAZY_CACHES];

/* A scratch buffer that grows. */
extern char *lazy_scratch;
void lazy_grow(unsigned long bytes);

#ifdef __cplusplus
}
#endif
#endif
