// Command golang serves a page that contains the server's name. It is an example application for
// source-to-image builds.
package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"html"
	"log"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

//go:embed page.html
var template string

//go:embed VERSION
var version string

func main() {
	version = strings.TrimSpace(version)
	http.HandleFunc("/", page)
	http.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	server := &http.Server{Addr: ":" + environment("PORT", "8080"), ReadHeaderTimeout: 10 * time.Second}

	// On a signal, the program completes in-flight requests before it exits.
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	done := make(chan error, 1)
	go func() {
		<-ctx.Done()
		done <- server.Shutdown(context.Background())
	}()
	log.Printf("version %s listens at %s", version, server.Addr)
	if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		log.Fatal(err)
	}
	if err := <-done; err != nil {
		log.Fatal(err)
	}
}

func page(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/" {
		http.NotFound(w, r)
		return
	}
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	var rows strings.Builder
	for _, fact := range [][2]string{
		{"Version", version},
		{"Host", host},
		{"Build", environment("OPENSHIFT_BUILD_NAME", "none")},
		{"Commit", fmt.Sprintf("%.7s", environment("OPENSHIFT_BUILD_COMMIT", "none"))},
	} {
		fmt.Fprintf(&rows, "<dt>%s<dd>%s", fact[0], html.EscapeString(fact[1]))
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	fmt.Fprint(w, strings.NewReplacer(
		"{{greeting}}", html.EscapeString(environment("GREETING", "Hello")), "{{facts}}", rows.String(),
	).Replace(template))
}

// environment returns the value of an environment variable, or fallback if the value is empty.
func environment(name, fallback string) string {
	if value := os.Getenv(name); value != "" {
		return value
	}
	return fallback
}
