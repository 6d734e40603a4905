package config

import (
	"fmt"
	"net"
	"net/netip"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	legacyv1 "github.com/openshift/api/legacyconfig/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/slipway-platform/slipway/internal/redact"
)

// checker collects problems with the values in one document. Its methods take a key and the key's
// value. They treat an empty value as missing.
type checker struct {
	document *document
	problems Problems
}

// fail records a problem with a key. It does nothing if the decoder has already rejected the value.
func (c *checker) fail(key, format string, args ...any) {
	for at := key; at != ""; at = at[:max(strings.LastIndexAny(at, ".["), 0)] {
		if c.document.broken[at] {
			return
		}
	}
	c.problems = append(c.problems, Problem{
		File: c.document.file, Line: c.document.line(key), Key: key, Text: redact.Text(fmt.Sprintf(format, args...)),
	})
}

// listen validates an ip:port on which a component listens.
func (c *checker) listen(key, value string) {
	if value == "" {
		return
	}
	address, err := netip.ParseAddrPort(value)
	if err != nil || address.Port() == 0 {
		c.fail(key, "is %q, must be an IP address and a port such as 0.0.0.0:8443", value)
	}
}

// network validates the network of a listen address, which is OpenShift 3's bindNetwork setting.
func (c *checker) network(key, value, address string) {
	ip, err := netip.ParseAddrPort(address)
	switch {
	case value == "" || value == "tcp" || err != nil:
	case value != "tcp4" && value != "tcp6":
		c.fail(key, "is %q, must be tcp, tcp4 or tcp6", value)
	case (value == "tcp4") != ip.Addr().Is4():
		c.fail(key, "is %q, but bindAddress is %s; change one of them", value, address)
	}
}

// hostPort validates a host:port. The host is a name or an IP address.
func (c *checker) hostPort(key, value string) {
	if value == "" {
		return
	}
	host, text, err := net.SplitHostPort(value)
	port, notNumber := strconv.Atoi(text)
	if err != nil || notNumber != nil || host == "" || port < 1 || port > 65535 {
		c.fail(key, "is %q, must be a host and a port such as 127.0.0.1:4001", value)
	}
}

// ip validates an IP address. It returns the zero Addr if value is empty or invalid.
func (c *checker) ip(key, value string) netip.Addr {
	if value == "" {
		return netip.Addr{}
	}
	address, err := netip.ParseAddr(value)
	if err != nil {
		c.fail(key, "is %q, must be an IP address", value)
	}
	return address
}

// cidr validates an IPv4 network. It returns the zero Prefix if value is empty or invalid.
func (c *checker) cidr(key, value string) netip.Prefix {
	if isIPv6(value) {
		c.fail(key, "is %q, must be an IPv4 network", value)
		return netip.Prefix{}
	}
	return c.anyCIDR(key, value)
}

// anyCIDR validates a network of either IP family. It returns the zero Prefix if value is empty or
// invalid.
func (c *checker) anyCIDR(key, value string) netip.Prefix {
	network, err := netip.ParsePrefix(value)
	switch {
	case value == "":
		return netip.Prefix{}
	case err != nil:
		c.fail(key, "is %q, must be a network such as 10.128.0.0/14", value)
		return netip.Prefix{}
	case network != network.Masked():
		c.fail(key, "is %q, whose address is not the first of the network; write %s", value, network.Masked())
		return netip.Prefix{}
	}
	return network
}

func (c *checker) domain(key, value string) {
	if problems := validation.IsDNS1123Subdomain(value); value != "" && len(problems) > 0 {
		c.fail(key, "is %q, must be a DNS name of lower-case letters, digits, '-' and '.', "+
			"at most 253 characters", value)
	}
}

func (c *checker) absolute(key, path string) {
	if path != "" && !filepath.IsAbs(path) {
		c.fail(key, "is %q, must be an absolute path", path)
	}
}

func (c *checker) duration(key, value string) {
	if value == "" {
		return
	}
	if d, err := time.ParseDuration(value); err != nil || d < 0 {
		c.fail(key, "is %q, must be a duration such as 5m or 30s", value)
	}
}

func (c *checker) notNegative(key string, value int) {
	if value < 0 {
		c.fail(key, "is %d, must not be negative", value)
	}
}

// device validates a network device name against the kernel's rules.
func (c *checker) device(key, name string) {
	if len(name) > 15 || name == "." || name == ".." || strings.ContainsAny(name, "/: \t\n\x00") {
		c.fail(key, "is %q, must be a network device name: at most 15 characters, "+
			"without '/', ':' and spaces", name)
	}
}

// exclusive reports a problem if two mutually exclusive keys are both set.
func (c *checker) exclusive(first string, firstSet bool, second string, secondSet bool) {
	if firstSet && secondSet {
		c.fail(second, "excludes %s; keep one of the two", first)
	}
}

// arguments validates the flag names for an upstream program. The program itself validates the
// flags' values when it starts.
func (c *checker) arguments(key string, arguments legacyv1.ExtendedArguments) {
	for name := range arguments {
		switch {
		case strings.HasPrefix(name, "-"):
			c.fail(key+"."+name, "must be written without leading dashes: %s", strings.TrimLeft(name, "-"))
		case name == "":
			c.fail(key, "has an argument without a name")
		}
	}
}

// claim is a port on which a component on the host listens.
type claim struct {
	document *document
	kind     string
	key      string
	address  string
}

// checkPorts reports components that listen on the same address and port.
func checkPorts(claims []claim) Problems {
	var problems Problems
	for i, a := range claims {
		hostA, portA := splitAddress(a.address)
		for _, b := range claims[:i] {
			hostB, portB := splitAddress(b.address)
			if portA == 0 || portA != portB ||
				!(hostA == hostB || unspecified(hostA) || unspecified(hostB)) {
				continue
			}
			claim, other := a, b
			if _, ok := a.document.lines[a.key]; !ok {
				claim, other = b, a // prefer the key that is set in a file
			}
			check := checker{document: claim.document}
			check.fail(claim.key, "is %q, but the %s's %s is %q; choose another port",
				claim.address, other.kind, other.key, other.address)
			problems = append(problems, check.problems...)
		}
	}
	return problems
}

func unspecified(host string) bool {
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsUnspecified()
}

// indexed returns the key for a list item.
func indexed(key string, i int) string { return key + "[" + strconv.Itoa(i) + "]" }

// overlaps returns the first entry in networks that overlaps network.
func overlaps(network netip.Prefix, networks []netip.Prefix) (netip.Prefix, bool) {
	i := slices.IndexFunc(networks, func(other netip.Prefix) bool {
		return network.IsValid() && other.IsValid() && network.Overlaps(other)
	})
	if i < 0 {
		return netip.Prefix{}, false
	}
	return networks[i], true
}
