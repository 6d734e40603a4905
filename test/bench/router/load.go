package router

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/slipway-platform/slipway/test/bench/host"
)

// requestLoad is a load generator's result.
type requestLoad struct {
	rate   float64       // number of requests per second
	p99    time.Duration // duration of a request
	failed int
}

// loadResult contains, for one kind of request, each round's measurements with the router and with
// HAProxy alone.
type loadResult struct {
	name            string
	slipway, static []requestLoad
}

// kinds contains the route terminations and the hosts of their routes. The hosts are IP addresses,
// which are also valid host names, so that wrk can resolve them and sends them in the TLS
// handshake.
var kinds = []struct{ name, termination, host, port string }{
	{"plain", "", "127.0.7.1", "podHTTP"}, {"edge", "edge", "127.0.7.2", "podHTTP"}, {"re-encrypt", "reencrypt", "127.0.7.3", "podHTTPS"},
	{"passthrough", "passthrough", "127.0.7.4", "podHTTPS"},
}

// loadPods contains the addresses of each service's pods.
var loadPods = []string{"127.0.8.1", "127.0.8.2"}

// measureLoads sends requests alternately through the router and through HAProxy alone.
func measureLoads(ctx context.Context, program string, o Options) (all []loadResult, err error) {
	c, err := newCluster()
	if err != nil {
		return nil, err
	}
	defer c.stop()
	for _, kind := range kinds {
		if err := c.makeService(ctx, kind.name, kind.port, loadPods...); err != nil {
			return nil, err
		}
		if err := c.makeRoute(ctx, kind.name, kind.host, kind.name, kind.termination); err != nil {
			return nil, err
		}
	}
	if _, err := c.startRouter(ctx, program); err != nil {
		return nil, err
	}
	if err := c.pods(); err != nil {
		return nil, err
	}
	if err := c.haproxy("static", c.static()); err != nil {
		return nil, err
	}
	if err := host.Pause(ctx, 2*time.Second); err != nil { // wait for the first health checks
		return nil, err
	}
	for _, keep := range []bool{true, false} {
		for _, kind := range kinds {
			result := loadResult{name: kind.name + ", connections kept"}
			if !keep {
				result.name = kind.name + ", a connection each"
			}
			for range o.Rounds {
				for _, side := range []struct {
					ports [2]string
					into  *[]requestLoad
				}{{[2]string{httpPort, httpsPort}, &result.slipway}, {[2]string{"staticHTTP", "staticHTTPS"}, &result.static}} {
					url := "http://" + kind.host + ":" + c.ports[side.ports[0]] + "/"
					if kind.termination != "" {
						url = "https://" + kind.host + ":" + c.ports[side.ports[1]] + "/"
					}
					got, err := wrk(ctx, url, keep, o.Load)
					if err != nil {
						return nil, err
					}
					*side.into = append(*side.into, got)
				}
			}
			all = append(all, result)
			fmt.Fprint(os.Stderr, " .")
		}
	}
	return all, nil
}

// wrk runs the load generator wrk.
func wrk(ctx context.Context, url string, keep bool, long time.Duration) (load requestLoad, err error) {
	arguments := []string{"--threads", "1", "--connections", "32", "--duration", fmt.Sprintf("%ds", int(long.Seconds())), "--latency"}
	if !keep {
		arguments = append(arguments, "--header", "Connection: close")
	}
	output, err := exec.CommandContext(ctx, "wrk", append(arguments, url)...).CombinedOutput()
	if err != nil {
		return load, fmt.Errorf("run wrk; apt-get install wrk: %w: %s", err, output)
	}
	return readWrk(string(output))
}

// readWrk parses wrk's output.
func readWrk(text string) (load requestLoad, err error) {
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		switch {
		case len(words) == 2 && words[0] == "99%":
			load.p99, err = time.ParseDuration(words[1])
		case len(words) == 2 && words[0] == "Requests/sec:":
			load.rate, err = strconv.ParseFloat(words[1], 64)
		case strings.HasPrefix(line, "  Non-2xx"):
			load.failed, err = strconv.Atoi(words[len(words)-1])
		case strings.HasPrefix(line, "  Socket errors:"):
			return load, fmt.Errorf("requests fail: %s", strings.TrimSpace(line))
		}
		if err != nil {
			return load, fmt.Errorf("read output of wrk, %q: %w", line, err)
		}
	}
	if load.rate == 0 || load.failed > 0 {
		return load, fmt.Errorf("%d requests fail: %s", load.failed, text)
	}
	return load, nil
}

// static returns a handwritten configuration for the hosts and pods in kinds and loadPods. Cookies
// keep a session on the same pod, health checks test the pods, and headers identify the client. The
// host name in the TLS handshake determines whether HAProxy terminates the connection or passes it
// through.
func (c *cluster) static() string {
	var b strings.Builder
	headers := func(scheme string) string {
		return "  option forwardfor\n  http-request set-header X-Forwarded-Host %[req.hdr(Host)]\n  http-request set-header X-Forwarded-Port %[dst_port]\n  http-request set-header X-Forwarded-Proto " + scheme + "\n"
	}
	fmt.Fprintf(&b, "frontend http\n  bind :%s\n%s  use_backend plain if { req.hdr(Host),host_only %s }\n", c.ports["staticHTTP"], headers("http"), kinds[0].host)
	fmt.Fprintf(&b, `frontend https
  mode tcp
  bind :%s
  tcp-request inspect-delay 5s
  tcp-request content accept if { req.ssl_hello_type 1 }
  use_backend passthrough if { req.ssl_sni %s }
  default_backend inner
backend inner
  mode tcp
  server inner 127.0.0.1:%[3]s send-proxy
frontend inner
  bind 127.0.0.1:%[3]s accept-proxy ssl crt %[4]s
%s  use_backend edge if { req.hdr(Host),host_only %s }
  use_backend re-encrypt if { req.hdr(Host),host_only %s }
`, c.ports["staticHTTPS"], kinds[3].host, c.ports["staticInner"], c.certificate(), headers("https"), kinds[1].host, kinds[2].host)
	for _, kind := range kinds {
		fmt.Fprintf(&b, "backend %s\n", kind.name)
		options := " check"
		switch kind.termination {
		case "passthrough":
			b.WriteString("  mode tcp\n  balance source\n")
		case "reencrypt":
			options = " ssl verify none check"
			fallthrough
		default:
			b.WriteString("  balance leastconn\n  cookie server insert indirect nocache httponly\n")
		}
		for i, address := range loadPods {
			cookie := ""
			if kind.termination != "passthrough" {
				cookie = fmt.Sprintf(" cookie %d", i)
			}
			fmt.Fprintf(&b, "  server pod%d %s:%s%s%s\n", i, address, c.ports[kind.port], options, cookie)
		}
	}
	return b.String()
}
