/* Engines where no server is. */
#include <stdio.h>
#include <string.h>
#include <taiyen/standby.h>

/* Whether it says so, or that the library was built without this engine. */
static int as_expected(ty_status status) {
    puts(ty_error_text());
    return status == TY_E_UNSUPPORTED ||
           (status == TY_E_IO && (strstr(ty_error_text(), "server") || strstr(ty_error_text(), "broker")));
}

int main(void) {
    ty_engine *engine;
    ty_kafka_options options = TY_KAFKA_OPTIONS_INIT;
    ty_status jetstream, kafka;
    options.timeout_ms = 100;
    jetstream = ty_jetstream_open("nats://127.0.0.1:1", "outside", NULL, &engine);
    if (!as_expected(jetstream))
        return 1;
    kafka = ty_kafka_open("127.0.0.1:1", "outside", &options, &engine);
    return !as_expected(kafka) || (jetstream == TY_E_UNSUPPORTED && kafka == TY_E_UNSUPPORTED);
}
