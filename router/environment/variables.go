package environment

import "strings"

// Variable is an environment variable of a router.
type Variable struct {
	Name, Default, Meaning string
	kind                   kind
}

// isSecret reports whether the variable's value must be omitted from errors.
func (v Variable) isSecret() bool { return strings.HasSuffix(v.Name, "PASSWORD") }

const alphanumeric = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

// Variables returns all of a router's variables.
func Variables() []Variable {
	var all []Variable
	for _, group := range [][]Variable{supported(), certificates(), listening(), balancing(), observing(), timeouts(), external()} {
		all = append(all, group...)
	}
	return all
}

// supported returns the variables that determine which routes and hosts a router serves.
func supported() []Variable {
	return []Variable{
		{"ROUTE_LABELS", "", "Selector of the routes that are served", selector()},
		{"NAMESPACE_LABELS", "", "Selector of the namespaces whose routes are served", selector()},
		{"PROJECT_LABELS", "", "Selector of the projects whose routes are served", selector()},
		{"ROUTER_WATCH_NAMESPACE", "", "The only namespace whose routes are served; the router needs no other permissions", word()},
		{"ROUTER_ALLOWED_DOMAINS", "", "The only domains whose hosts are served", text()},
		{"ROUTER_DENIED_DOMAINS", "", "Domains whose hosts are not served", text()},
		{"ROUTER_ALLOW_WILDCARD_ROUTES", "false", "Serve routes with the wildcard policy Subdomain", flag()},
		{"ROUTER_DISABLE_NAMESPACE_OWNERSHIP_CHECK", "false", "Let several namespaces share a host", flag()},
		{"ROUTER_SUBDOMAIN", "", "Template for the host of routes without one, such as ${name}-${namespace}.apps.example.com", text()},
		{"ROUTER_DOMAIN", "", "Domain for spec.subdomain of routes; the router of a node uses the cluster's", domain()},
		{"ROUTER_OVERRIDE_HOSTNAME", "false", "Use ROUTER_SUBDOMAIN even for routes with a host", flag()},
		{"ROUTER_SERVICE_NAME", "public", "The router's name in the status of routes", text()},
		{"ROUTER_SERVICE_NAMESPACE", "", "The router's namespace", text()},
		{"ROUTER_CANONICAL_HOSTNAME", "", "Canonical host name of the router in the status of routes", text()},
		{"EXTENDED_VALIDATION", "true", "Reject routes whose certificates are malformed", flag()},
	}
}

func certificates() []Variable {
	return []Variable{
		{"DEFAULT_CERTIFICATE", "", "Certificate and key, in PEM, for routes without their own", anyText()},
		{"DEFAULT_CERTIFICATE_PATH", "", "File of the default certificate and its key", text()},
		{"DEFAULT_CERTIFICATE_DIR", "", "Directory with tls.crt and tls.key of the default certificate", text()},
		{"ROUTER_CIPHERS", "intermediate", "Ciphers: modern, intermediate, old, or a list as openssl ciphers prints it", letters("modern, intermediate, old, or names of ciphers, separated by colons", alphanumeric+":-_+!@=")},
		{"ROUTER_STRICT_SNI", "false", "Reject TLS for hosts without their own certificate", flag()},
		{"ROUTER_MUTUAL_TLS_AUTH", "none", "Request certificates from clients", oneOf("none", "optional", "required")},
		{"ROUTER_MUTUAL_TLS_AUTH_CA", "", "File with the certificate authorities for clients' certificates", text()},
		{"ROUTER_MUTUAL_TLS_AUTH_CRL", "", "File with the certificate revocation list for clients' certificates", text()},
		{"ROUTER_MUTUAL_TLS_AUTH_FILTER", "", "Regular expression for the subject of clients' certificates", text()},
		{"ROUTER_ENABLE_HTTP2", "false", "Enable HTTP/2 for hosts with their own certificate", flag()},
	}
}

func listening() []Variable {
	return []Variable{
		{"ROUTER_SERVICE_HTTP_PORT", "80", "Port for HTTP", port()},
		{"ROUTER_SERVICE_HTTPS_PORT", "443", "Port for HTTPS", port()},
		{"ROUTER_SERVICE_SNI_PORT", "10444", "For custom templates: local port for TLS with a server name; the default template uses a Unix socket", port()},
		{"ROUTER_SERVICE_NO_SNI_PORT", "10443", "For custom templates: local port for TLS without a server name; the default template uses a Unix socket", port()},
		{"ROUTER_IP_V4_V6_MODE", "v4", "Addresses to listen on: v4, v6 or v4v6", oneOf("v4", "v6", "v4v6")},
		{"ROUTER_USE_PROXY_PROTOCOL", "false", "Expect the PROXY protocol on the ports for HTTP and HTTPS", flag()},
		{"ROUTER_BIND_PORTS_AFTER_SYNC", "false", "Listen only after all routes are synced", flag()},
		{"ROUTER_MAX_CONNECTIONS", "20000", "Maximum number of concurrent connections", number(1, 10_000_000)},
		{"ROUTER_THREADS", "", "Threads of HAProxy; one for each processor by default", number(1, 64)},
		{"TEMPLATE_FILE", "", "File of a custom template of the configuration", text()},
		{"RELOAD_SCRIPT", "", "Program that reloads HAProxy, instead of the router", text()},
	}
}

func balancing() []Variable {
	scheme := oneOf("source", "roundrobin", "leastconn")
	return []Variable{
		{"ROUTER_LOAD_BALANCE_ALGORITHM", "", "Load balancing of HTTP routes; leastconn by default", scheme},
		{"ROUTER_TCP_BALANCE_SCHEME", "", "Load balancing of passthrough routes; source by default, roundrobin for several services", scheme},
		{"ROUTER_BACKEND_PROCESS_ENDPOINTS", "", "Set shuffle for a random order of endpoints", oneOf("shuffle")},
		{"ROUTER_COOKIE_NAME", "", "Name of the cookie for session affinity", letters("of letters, digits, _ and -", alphanumeric+"_-")},
		{"ROUTER_ENABLE_COMPRESSION", "false", "Compress responses", flag()},
		{"ROUTER_COMPRESSION_MIME", "text/html text/plain text/css", "MIME types to compress", letters("types such as text/html, separated by spaces", alphanumeric+"/+-._ ")},
	}
}

func observing() []Variable {
	return []Variable{
		{"ROUTER_LISTEN_ADDR", "0.0.0.0:1936", "Address that serves metrics, statistics and health checks", address()},
		{"ROUTER_METRICS_TYPE", "haproxy", "Metrics in the format of Prometheus", oneOf("haproxy", "none")},
		{"ROUTER_METRICS_HAPROXY_SERVER_THRESHOLD", "500", "Number of servers above which only backends have metrics", number(0, 1_000_000)},
		{"ROUTER_METRICS_HAPROXY_EXPORTED", "2,4,5,7,8,9,13,14,17,21,24,33,35,40,43,60", "Columns of HAProxy's statistics to export", letters("numbers, separated by commas", "0123456789, ")},
		{"ROUTER_METRICS_HAPROXY_BASE_SCRAPE_INTERVAL", "5s", "Interval between reads of HAProxy's statistics", duration()},
		{"ROUTER_METRICS_TLS_CERT_FILE", "", "File with the TLS certificate for ROUTER_LISTEN_ADDR", text()},
		{"ROUTER_METRICS_TLS_KEY_FILE", "", "File with the key of the TLS certificate for ROUTER_LISTEN_ADDR", text()},
		{"STATS_PORT", "", "Port of HAProxy's statistics page", port()},
		{"STATS_USERNAME", "", "User of the statistics", text()},
		{"STATS_PASSWORD", "", "Password of the statistics", text()},
		{"ROUTER_SYSLOG_ADDRESS", "", "Address of the log; by default, nothing is logged", letters("an address such as 127.0.0.1:514 or the path of a socket", alphanumeric+".:/-_[]@")},
		{"ROUTER_SYSLOG_FORMAT", "", "Format of a line of the log", text()},
		{"ROUTER_LOG_LEVEL", "warning", "Level of the log", oneOf("emerg", "alert", "crit", "err", "warning", "notice", "info", "debug")},
	}
}

func timeouts() []Variable {
	return []Variable{
		{"ROUTER_BACKEND_CHECK_INTERVAL", "5000ms", "Interval between health checks of a server", duration()},
		{"ROUTER_CLIENT_FIN_TIMEOUT", "1s", "Timeout for a client to close its connection", duration()},
		{"ROUTER_DEFAULT_CLIENT_TIMEOUT", "30s", "Timeout for a client to send or receive data", duration()},
		{"ROUTER_DEFAULT_CONNECT_TIMEOUT", "5s", "Timeout for connecting to a server", duration()},
		{"ROUTER_DEFAULT_SERVER_FIN_TIMEOUT", "1s", "Timeout for a server to close its connection", duration()},
		{"ROUTER_DEFAULT_SERVER_TIMEOUT", "30s", "Timeout for a server to send or receive data", duration()},
		{"ROUTER_DEFAULT_TUNNEL_TIMEOUT", "1h", "Maximum idle time of TCP connections and WebSockets", duration()},
		{"ROUTER_SLOWLORIS_HTTP_KEEPALIVE", "300s", "Timeout for the next request on an open connection", duration()},
		{"ROUTER_SLOWLORIS_TIMEOUT", "10s", "Timeout for the headers of a request", duration()},
		{"ROUTER_GRACEFUL_SHUTDOWN_DELAY", "", "Time for which a stopping router still serves requests, but reports that it is not ready", duration()},
		{"RELOAD_INTERVAL", "5s", "Minimum time between two reloads", duration()},
		{"ROUTER_METRICS_HAPROXY_TIMEOUT", "5s", "Timeout for HAProxy to send its statistics", duration()},
	}
}
