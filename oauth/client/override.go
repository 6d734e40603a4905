package client

import (
	"net"
	"net/url"
	"strings"

	routev1 "github.com/openshift/api/route/v1"
)

// overridden returns the URL of a route on the given host. override replaces the URL's scheme
// (`https://`), host (`//website.com`), port (`//:8000`), path (`path`), or several of these parts.
func overridden(route *routev1.Route, host, override string) string {
	address := &url.URL{Scheme: "http", Host: host, Path: route.Spec.Path}
	if route.Spec.TLS != nil {
		address.Scheme = "https"
	}
	change, err := url.Parse(override)
	if override == "" || err != nil {
		return address.String()
	}
	if change.Scheme != "" {
		address.Scheme = change.Scheme
	}
	name, port := address.Hostname(), ""
	if change.Hostname() != "" {
		name = change.Hostname()
	}
	if change.Port() != "" {
		port = change.Port()
	}
	address.Host = name
	if port != "" {
		address.Host = net.JoinHostPort(name, port)
	}
	if change.Path != "" {
		address.Path = "/" + strings.TrimPrefix(change.Path, "/")
	}
	return address.String()
}
