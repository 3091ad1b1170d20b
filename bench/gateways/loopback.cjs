// Gateways from npm that can't be told an address listen on 127.0.0.1 only, while they are tested.
const { Server } = require("node:net");
const { listen } = Server.prototype;
Server.prototype.listen = function (port, ...rest) {
    return typeof port === "number" || typeof port === "string"
        ? listen.call(this, Number(port), "127.0.0.1", ...rest.filter((one) => typeof one === "function"))
        : listen.call(this, port, ...rest);
};
