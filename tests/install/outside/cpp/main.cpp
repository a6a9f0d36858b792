#include <cstdio>
#include <taiyen/taiyen.h>

int main() {
    return std::printf("Taiyen %s\n", ty_version()) < 0;
}
