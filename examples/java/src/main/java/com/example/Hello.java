package com.example;

import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.Executors;

/** Serves a page that shows which program serves it. */
public final class Hello {
    private static final String PAGE = """
            <!doctype html>
            <html lang="en">
            <meta charset="utf-8">
            <title>Hello from Java</title>
            <h1>Hello from Java</h1>
            <dl><dt>Host<dd>%s<dt>Build<dd>%s</dl>
            </html>
            """;

    private Hello() {}

    public static void main(String[] arguments) throws IOException {
        HttpServer server = HttpServer.create(new InetSocketAddress(8080), 0);
        server.createContext("/", Hello::answer);
        server.setExecutor(Executors.newCachedThreadPool());
        server.start();
        Runtime.getRuntime().addShutdownHook(new Thread(() -> server.stop(1)));
    }

    private static void answer(HttpExchange exchange) throws IOException {
        switch (exchange.getRequestURI().getPath()) {
            case "/" -> send(exchange, 200, "text/html; charset=utf-8", page());
            case "/healthz" -> send(exchange, 200, "text/plain", "ok\n");
            default -> send(exchange, 404, "text/plain", "not found\n");
        }
    }

    private static String page() {
        return PAGE.formatted(variable("HOSTNAME"), variable("OPENSHIFT_BUILD_NAME"));
    }

    private static String variable(String name) {
        return System.getenv().getOrDefault(name, "none");
    }

    private static void send(HttpExchange exchange, int status, String type, String text) throws IOException {
        byte[] body = text.getBytes(StandardCharsets.UTF_8);
        exchange.getResponseHeaders().set("Content-Type", type);
        exchange.sendResponseHeaders(status, body.length);
        try (exchange) {
            exchange.getResponseBody().write(body);
        }
    }
}
