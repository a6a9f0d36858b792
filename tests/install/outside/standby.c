/* An engine where no server is. */
#include <stdio.h>
#include <string.h>
#include <taiyen/standby.h>

int main(void) {
    ty_engine *engine;
    if (ty_jetstream_open("nats://127.0.0.1:1", "outside", NULL, &engine) != TY_E_IO)
        return 1;
    puts(ty_error_text());
    return strstr(ty_error_text(), "server") == NULL;
}
