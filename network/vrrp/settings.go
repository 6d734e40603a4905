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

// Settings are what the variables say.
type Settings struct {
	// Name is that of the configuration, which the instances of VRRP have in theirs.
	Name string
	// Interface is the device that gets the addresses; empty: the one of the default route.
	Interface string
	Addresses []netip.Addr
	// Groups is how many groups of addresses move together; 0: each address is a group.
	Groups int
	// Replicas is how many hosts share the addresses.
	Replicas int
	// FirstID is the identity of the first group in VRRP.
	FirstID int
	// Port is what must answer on a host for it to have addresses, 0 for nothing.
	Port int
	// CheckScript is run instead of asking the port, and NotifyScript when the state of a group changes; paths.
	CheckScript, NotifyScript string
	// CheckInterval is the time between two checks.
	CheckInterval time.Duration
	// Preemption is empty, "nopreempt" or "preempt_delay SECONDS": whether a host takes addresses back from one of a lower priority.
	Preemption string
	// Chain is the chain of the table `ip filter` that lets VRRP in; empty: none.
	Chain string
}

// maxID is the highest identity that VRRP has.
const maxID = 255

// Texts that are written into keepalived's configuration.
var (
	names   = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$`)
	devices = regexp.MustCompile(`^[A-Za-z0-9._@-]{1,15}$`)
	paths   = regexp.MustCompile(`^/[A-Za-z0-9._/@+-]+$`)
)

// Read reads variables; lookup is that of the environment. All problems are reported together.
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
		r.problems = append(r.problems, fmt.Errorf("%sVIRTUAL_IPS: %w", prefix, err))
	}
	if last := s.FirstID + len(s.groups()) - 1; last > maxID {
		r.problems = append(r.problems, fmt.Errorf("%sVIRTUAL_IPS: %d groups of addresses from identity %d on are more than the %d of VRRP; set %[1]sVIP_GROUPS",
			prefix, len(s.groups()), s.FirstID, maxID))
	}
	return s, errors.Join(r.problems...)
}

// prefix is what the names of the variables begin with.
const prefix = "OPENSHIFT_HA_"

type reader struct {
	lookup   func(string) (string, bool)
	problems []error
}

// value is what a variable says, without spaces around it; set is false where there is none.
func (r *reader) value(name string) (value string, set bool) {
	value, set = r.lookup(prefix + name)
	return strings.TrimSpace(value), set
}

func (r *reader) problem(name, value, want string) {
	r.problems = append(r.problems, fmt.Errorf("%s%s: is %q, must be %s", prefix, name, value, want))
}

func (r *reader) text(name, usual string, shape *regexp.Regexp, want string) string {
	value, set := r.value(name)
	if !set {
		return usual
	}
	if value != "" && !shape.MatchString(value) {
		r.problem(name, value, want)
	}
	return value
}

func (r *reader) number(name string, usual, least, most int) int {
	value, _ := r.value(name)
	if value == "" {
		return usual
	}
	n, err := strconv.Atoi(value)
	if err != nil || n < least || n > most {
		r.problem(name, value, fmt.Sprintf("a number from %d to %d", least, most))
		return usual
	}
	return n
}

// preemption reads the strategy: nopreempt, or preempt_delay or preempt_nodelay with a number of seconds, which the latter has no use for.
func (r *reader) preemption() string {
	const name, maxDelay = "PREEMPTION", 1000
	value, _ := r.value(name)
	word, number, _ := strings.Cut(value, " ")
	seconds, err := strconv.Atoi(strings.TrimSpace(number))
	switch {
	case value == "", word == "preempt_nodelay":
		return ""
	case value == "nopreempt":
		return value
	case word == "preempt_delay" && err == nil && seconds >= 0 && seconds <= maxDelay:
		return fmt.Sprintf("preempt_delay %d", seconds)
	}
	r.problem(name, value, fmt.Sprintf("preempt_nodelay, nopreempt, or preempt_delay with 0 to %d seconds", maxDelay))
	return ""
}

// groups are the addresses that move together.
func (s *Settings) groups() [][]netip.Addr {
	count := len(s.Addresses)
	if s.Groups > 0 && s.Groups < count {
		count = s.Groups
	}
	all := make([][]netip.Addr, count)
	for i, address := range s.Addresses {
		all[i%count] = append(all[i%count], address)
	}
	return all
}
