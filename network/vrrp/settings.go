package vrrp

import (
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/slipway-platform/slipway/internal/virtualip"
)

// Settings contains the settings from the environment variables.
type Settings struct {
	// Name is the name of the configuration and its VRRP instances.
	Name string
	// Interface is the device for the addresses. It defaults to the default route's device.
	Interface string
	Addresses []netip.Addr
	// Groups is the number of address groups. The addresses in a group move together. If Groups is
	// 0, each address forms its own group.
	Groups int
	// Replicas is the number of hosts that share the addresses.
	Replicas int
	// FirstID is the first group's VRRP ID.
	FirstID int
	// Port is the port that must accept connections on a host that has addresses. If it is 0,
	// keepalived does not check a port.
	Port int
	// CheckScript is the path of a script that replaces the port check. NotifyScript is the path of
	// a script that runs when a group's state changes.
	CheckScript, NotifyScript string
	// CheckInterval is the interval between two checks.
	CheckInterval time.Duration
	// Preemption is empty, "nopreempt" or "preempt_delay SECONDS". It determines whether a host
	// takes addresses back from a host with a lower priority.
	Preemption string
	// Chain is the chain in the `ip filter` table that must accept VRRP, or empty.
	Chain string
}

// maxID is the highest VRRP ID.
const maxID = 255

// Patterns for values that are written to keepalived's configuration.
var (
	names   = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$`)
	devices = regexp.MustCompile(`^[A-Za-z0-9._@-]{1,15}$`)
	paths   = regexp.MustCompile(`^/[A-Za-z0-9._/@+-]+$`)
)

// Read reads the environment variables with lookup, such as os.LookupEnv. It returns all errors
// together.
func Read(lookup func(string) (string, bool)) (*Settings, error) {
	r := &reader{lookup: lookup}
	s := &Settings{
		Name:          r.text("CONFIG_NAME", "ipfailover", names, "a name of letters, digits, dots and dashes"),
		Interface:     r.text("NETWORK_INTERFACE", "", devices, "the name of a network device"),
		Groups:        r.number("VIP_GROUPS", 0, 0, maxID),
		Replicas:      r.number("REPLICA_COUNT", 1, 1, 250),
		FirstID:       r.number("VRRP_ID_OFFSET", 0, 0, maxID-1) + 1,
		Port:          r.number("MONITOR_PORT", 80, 0, 65535),
		CheckScript:   r.text("CHECK_SCRIPT", "", paths, "the path of a script"),
		NotifyScript:  r.text("NOTIFY_SCRIPT", "", paths, "the path of a script"),
		CheckInterval: time.Duration(r.number("CHECK_INTERVAL", 2, 1, 3600)) * time.Second,
		Chain:         r.text("IPTABLES_CHAIN", "INPUT", names, "the name of a chain"),
	}
	s.Preemption = r.preemption()
	list, _ := lookup(prefix + "VIRTUAL_IPS")
	var err error
	if s.Addresses, err = virtualip.Parse(list); err != nil {
		r.errs = append(r.errs, fmt.Errorf("%sVIRTUAL_IPS: %w", prefix, err))
	}
	if lastID := s.FirstID + len(s.groups()) - 1; lastID > maxID {
		r.errs = append(r.errs, fmt.Errorf("%sVIRTUAL_IPS: %d groups of addresses, with IDs from %d, exceed the maximum VRRP ID of %d; combine addresses with %[1]sVIP_GROUPS",
			prefix, len(s.groups()), s.FirstID, maxID))
	}
	return s, errors.Join(r.errs...)
}

// prefix is the prefix of the variables' names.
const prefix = "OPENSHIFT_HA_"

type reader struct {
	lookup func(string) (string, bool)
	errs   []error
}

// value returns an environment variable without surrounding whitespace. set is false if the
// variable does not exist.
func (r *reader) value(name string) (value string, set bool) {
	value, set = r.lookup(prefix + name)
	return strings.TrimSpace(value), set
}

func (r *reader) addError(name, value, want string) {
	r.errs = append(r.errs, fmt.Errorf("%s%s is %q, must be %s", prefix, name, value, want))
}

func (r *reader) text(name, defaultValue string, pattern *regexp.Regexp, want string) string {
	value, set := r.value(name)
	if !set {
		return defaultValue
	}
	if value != "" && !pattern.MatchString(value) {
		r.addError(name, value, want)
	}
	return value
}

func (r *reader) number(name string, defaultValue, minValue, maxValue int) int {
	value, _ := r.value(name)
	if value == "" {
		return defaultValue
	}
	n, err := strconv.Atoi(value)
	if err != nil || n < minValue || n > maxValue {
		r.addError(name, value, fmt.Sprintf("a number from %d to %d", minValue, maxValue))
		return defaultValue
	}
	return n
}

// preemption parses the preemption strategy: nopreempt, preempt_delay with a number of seconds, or
// preempt_nodelay, whose number is ignored.
func (r *reader) preemption() string {
	const name, maxDelay = "PREEMPTION", 1000
	value, _ := r.value(name)
	strategy, number, _ := strings.Cut(value, " ")
	seconds, err := strconv.Atoi(strings.TrimSpace(number))
	switch {
	case value == "", strategy == "preempt_nodelay":
		return ""
	case value == "nopreempt":
		return value
	case strategy == "preempt_delay" && err == nil && seconds >= 0 && seconds <= maxDelay:
		return fmt.Sprintf("preempt_delay %d", seconds)
	}
	r.addError(name, value, fmt.Sprintf("preempt_nodelay, nopreempt, or preempt_delay with 0 to %d seconds", maxDelay))
	return ""
}

// groups returns the groups of addresses that move together.
func (s *Settings) groups() [][]netip.Addr {
	count := len(s.Addresses)
	if s.Groups > 0 && s.Groups < count {
		count = s.Groups
	}
	groups := make([][]netip.Addr, count)
	for i, address := range s.Addresses {
		groups[i%count] = append(groups[i%count], address)
	}
	return groups
}
