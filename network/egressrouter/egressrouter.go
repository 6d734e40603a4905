// Package egressrouter implements the program that runs in egress router pods. These pods forward
// other pods' traffic to servers outside the cluster, with their own source address. The program's
// settings are environment variables.
//
// The router container is privileged. It gives the pod's macvlan device the address EGRESS_SOURCE
// and a default route through EGRESS_GATEWAY. Both can contain an IPv4 address and an IPv6 address.
// EGRESS_ROUTER_MODE determines its next step:
//
//	legacy, the default   redirects connections to EGRESS_DESTINATION, and waits for a signal
//	init                  redirects connections to EGRESS_DESTINATION, and exits
//	http-proxy, dns-proxy exits, so that the pod's next container starts
//
// The other containers are unprivileged. One container is an HTTP proxy that restricts its clients
// to the servers in EGRESS_HTTP_PROXY_DESTINATION. The other container is a TCP proxy to the
// servers in EGRESS_DNS_PROXY_DESTINATION. It resolves the servers' names for each connection.
//
// No machine outside the cluster can open a connection through the macvlan device. The response to
// a connection leaves the pod through the device on which the connection arrived, regardless of the
// client's address.
//
// Source: OpenShift Container Platform 3.11 Cluster Administration, Using an Egress Router to Allow
// External Resources to Recognize Pod Traffic.
package egressrouter

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"
)

// Commands of the program. Without a command, the program acts as the router container.
const (
	HTTPProxyCommand = "http-proxy"
	DNSProxyCommand  = "dns-proxy"
)

// httpProxyAddress is the address at which clients expect the HTTP proxy.
const httpProxyAddress = ":8080"

// terminationFile is the file whose content Kubernetes shows as the reason why a container exited.
const terminationFile = "/dev/termination-log"

// Main runs the command that the arguments specify until the process receives a termination signal.
// It exits with status 1 if a setting is invalid.
func Main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if err := Run(ctx, os.Args[1:], os.Getenv, os.Stdout); err != nil {
		text := "error: " + strings.ReplaceAll(err.Error(), "\n", "; ")
		fmt.Fprintln(os.Stderr, text)
		if file, err := os.OpenFile(terminationFile, os.O_WRONLY|os.O_TRUNC, 0); err == nil {
			fmt.Fprintln(file, text)
			file.Close()
		}
		os.Exit(1)
	}
}

// Run runs a command with the settings from the environment until ctx is done. It logs to out.
func Run(ctx context.Context, args []string, variable func(string) string, out io.Writer) error {
	if len(args) == 0 {
		return route(ctx, variable)
	}
	if len(args) > 1 {
		return fmt.Errorf("unexpected arguments %q", args[1:])
	}
	switch args[0] {
	case HTTPProxyCommand:
		access, err := ParseAccess(variable(httpDestinationVariable))
		if err != nil {
			return err
		}
		return proxyHTTP(ctx, httpProxyAddress, access, slog.New(slog.NewTextHandler(out, nil)))
	case DNSProxyCommand:
		targets, err := ParseTargets(variable(dnsDestinationVariable))
		if err != nil {
			return err
		}
		if variable(dnsDebugVariable) == "" {
			out = io.Discard
		}
		return proxyTCP(ctx, targets, slog.New(slog.NewTextHandler(out, nil)))
	}
	return fmt.Errorf("unknown command %q; use %s, %s or none", args[0], HTTPProxyCommand, DNSProxyCommand)
}

// route implements the router container.
func route(ctx context.Context, variable func(string) string) error {
	settings, err := ParseSettings(variable)
	if err != nil {
		return err
	}
	if err := settings.apply(); err != nil {
		if errors.Is(err, os.ErrPermission) {
			err = fmt.Errorf("%w: the container must be privileged", err)
		}
		return err
	}
	if settings.Mode == legacyMode {
		<-ctx.Done()
	}
	return nil
}
