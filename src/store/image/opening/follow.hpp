// A follower's part of an open (follow.cpp).
#pragma once

#include "../snapshots/snapshots.hpp"

namespace taiyen {

// Fewer private copies are not worth dropping. Tests lower it.
inline uint64_t follower_copies_min = 1024;
// To make a page writable by itself takes as long as making so many of all pages writable at once does. Tests lower it.
inline uint64_t follower_page_cost = 64;

// What the memory of a heap that is open becomes: the image, and what it lacks. `copy` gets the context `&im`.
struct memory_of_image {
    image &im;
    const batch_list &batches;
    ty_status (*copy)(void *context, const page_copy *copies, size_t count, const char *bytes);
    ty_status status = TY_OK;
    static void run(void *context);
};

// Whether such a heap can be followed.
ty_status follow_check(const image &im, const image_header &header);
// Reads the header of the image and stands at its epoch.
ty_status follow_stand(image &im, image_header *header);
// The heap is mapped, as at its newest snapshot.
ty_status follow_start(image &im);
void follow_stop(image &im);
void follow_leave(image &im); // stands nowhere: it will not be read again

} // namespace taiyen
