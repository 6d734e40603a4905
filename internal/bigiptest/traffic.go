package bigiptest

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
)

// serveHTTP serves the HTTP virtual server.
func (a *Appliance) serveHTTP(w http.ResponseWriter, r *http.Request) { a.forward(w, r, HTTPServer) }

// serveHTTPS serves the HTTPS virtual server, except for passthrough.
func (a *Appliance) serveHTTPS(w http.ResponseWriter, r *http.Request) { a.forward(w, r, HTTPSServer) }

// forward handles a request as a virtual server's policies specify.
func (a *Appliance) forward(w http.ResponseWriter, r *http.Request, server string) {
	a.mu.Lock()
	d := a.decide(r, server)
	a.mu.Unlock()
	switch {
	case d.location != "":
		http.Redirect(w, r, d.location, http.StatusFound)
	case d.member == "":
		http.Error(w, d.problem, http.StatusServiceUnavailable)
	default:
		scheme := "http"
		if d.encryption != nil {
			scheme = "https"
		}
		transport := &http.Transport{DialContext: a.options.Dial, TLSClientConfig: d.encryption, DisableKeepAlives: true}
		proxy := httputil.ReverseProxy{Transport: transport, ErrorLog: silent(), Rewrite: func(out *httputil.ProxyRequest) {
			out.SetURL(&url.URL{Scheme: scheme, Host: d.member})
			out.Out.Host = out.In.Host
		}}
		proxy.ServeHTTP(w, r)
	}
}

// decision is the result of applying the rules to a request.
type decision struct {
	location string // target of a redirect
	member   string // address:port
	problem  string // the reason if there is neither a redirect nor a member
	// encryption is the TLS configuration for the connection to the member, or nil.
	encryption *tls.Config
}

// decide applies a virtual server's policies to a request.
func (a *Appliance) decide(r *http.Request, server string) (d decision) {
	host := strings.ToLower(r.Host)
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	rule := a.bestRule(server, host, r.URL.EscapedPath())
	if rule == nil {
		return decision{problem: "no rule of " + server + " matches"}
	}
	encrypts := a.objects["ltm/virtual/"+escape(server)+"/profiles/"+escape("/Common/serverssl")] != nil
	for _, action := range a.list(rule.path() + "/actions") {
		switch {
		case action.on("redirect"):
			text := strings.TrimPrefix(action.text("location"), "tcl:")
			d.location = strings.NewReplacer(`[getfield [HTTP::host] ":" 1]`, host, "[HTTP::uri]", r.URL.RequestURI()).Replace(text)
		case action.on("forward"):
			d.member = a.pick(action.text("pool"))
			d.problem = "no member in " + action.text("pool")
		case action.on("serverSsl"):
			encrypts = action.on("enable")
		}
	}
	if encrypts {
		d.encryption = a.serverTLS(host)
	}
	return d
}

// bestRule returns the matching rule with the most conditions. A rule for the whole host name takes
// precedence over a rule for the end of the host name.
func (a *Appliance) bestRule(server, host, path string) (best *object) {
	rank := -1
	for _, policy := range a.list("ltm/virtual/" + escape(server) + "/policies") {
		for _, rule := range a.list("ltm/policy/" + escape(policy.fullPath) + "/rules") {
			conditions := a.list(rule.path() + "/conditions")
			matches, score := true, 2*len(conditions)
			for _, c := range conditions {
				matches = matches && match(c, host, path)
				if c.on("httpHost") && c.on("equals") {
					score++
				}
			}
			if matches && score > rank {
				best, rank = rule, score
			}
		}
	}
	return best
}

// match reports whether a condition is true for a request.
func match(c *object, host, path string) bool {
	value := ""
	switch segments := strings.Split(strings.TrimPrefix(path, "/"), "/"); {
	case c.on("httpHost"):
		value = host
	case c.on("pathSegment"):
		index, _ := c.attributes["index"].(float64)
		if int(index) > len(segments) {
			return false
		}
		value = segments[int(index)-1]
	case c.on("path"):
		value = path
	}
	for _, want := range c.texts("values") {
		if c.on("equals") && value == want || c.on("endsWith") && strings.HasSuffix(value, want) {
			return !c.on("not")
		}
	}
	return c.on("not")
}

// stride is a prime number. It distributes the turns of a pool's members evenly.
const stride = 61

// pick returns the pool's next member, or "". Over time, it returns each member in proportion to
// its ratio.
func (a *Appliance) pick(pool string) string {
	var turns []string
	for _, member := range a.list("ltm/pool/" + escape(pool) + "/members") {
		address := member.text("address")
		port := strings.TrimLeft(strings.TrimPrefix(member.fullPath[strings.LastIndex(member.fullPath, "/")+1:], address), ":.")
		times, _ := member.attributes["ratio"].(float64)
		if a.objects["ltm/pool/"+escape(pool)].text("loadBalancingMode") != "ratio-member" {
			times = 1
		}
		for range int(times) {
			turns = append(turns, net.JoinHostPort(address, port))
		}
	}
	if len(turns) == 0 {
		return ""
	}
	a.next[pool]++
	return turns[a.next[pool]*stride%len(turns)]
}

// serverTLS returns the TLS configuration for connections to a host's pods. The configuration is
// from the server profile named after the host, or from the default profile, which verifies
// nothing.
func (a *Appliance) serverTLS(host string) *tls.Config {
	profile := a.attached("server-ssl", host)
	if profile == nil {
		return &tls.Config{ServerName: host, InsecureSkipVerify: true}
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM([]byte(a.content("ssl-cert", profile.text("caFile"))))
	name := profile.text("authenticateName")
	return &tls.Config{ServerName: host, InsecureSkipVerify: true, VerifyConnection: func(state tls.ConnectionState) error {
		options := x509.VerifyOptions{Roots: pool, Intermediates: x509.NewCertPool()}
		for _, certificate := range state.PeerCertificates[1:] {
			options.Intermediates.AddCert(certificate)
		}
		if name != "none" {
			options.DNSName = name
		}
		if _, err := state.PeerCertificates[0].Verify(options); err != nil {
			return fmt.Errorf("verify pod: %w", err)
		}
		return nil
	}}
}

// attached returns the HTTPS virtual server's profile for a host, or nil.
func (a *Appliance) attached(kind, host string) (profile *object) {
	_, domain, _ := strings.Cut(host, ".")
	for _, attachment := range a.list("ltm/virtual/" + escape(HTTPSServer) + "/profiles") {
		candidate := a.objects["ltm/profile/"+kind+"/"+escape(attachment.fullPath)]
		if candidate == nil {
			continue
		}
		if name := candidate.text("serverName"); name == host {
			return candidate
		} else if name == "*."+domain {
			profile = candidate
		}
	}
	return profile
}

// content returns the content of a certificate or key.
func (a *Appliance) content(collection, fullPath string) string {
	if o := a.objects["sys/file/"+collection+"/"+escape(fullPath)]; o != nil {
		return o.text("content")
	}
	return ""
}

// dial connects to a pool member.
func (a *Appliance) dial(member string) (net.Conn, error) {
	return a.options.Dial(context.Background(), "tcp", member)
}
