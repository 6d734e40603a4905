// Package environment parses a router's environment variables.
//
// Source: OpenShift Container Platform 3.9 Architecture, section on route-specific and router
// environment variables. Some additional variables are from the 3.11 router.
package environment

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Settings contains the values of a router's variables. A value either comes from the environment
// or is the default.
type Settings struct {
	values map[string]string
}

// Read reads a router's variables from an environment. The error reports all invalid values.
// Unknown variables are kept for custom templates.
func Read(environment map[string]string) (Settings, error) {
	s := Settings{values: maps.Clone(environment)}
	if s.values == nil {
		s.values = map[string]string{}
	}
	var problems []error
	for _, variable := range Variables() {
		value := strings.TrimSpace(s.values[variable.Name])
		if value == "" {
			s.values[variable.Name] = variable.Default
			continue
		}
		if variable.kind.valid(value) {
			s.values[variable.Name] = value
			continue
		}
		if variable.isSecret() {
			problems = append(problems, fmt.Errorf("set %s: it must be %s", variable.Name, variable.kind.want))
			continue
		}
		problems = append(problems, fmt.Errorf("set %s to %q: it must be %s", variable.Name, value, variable.kind.want))
	}
	if s.Text("ROUTER_SERVICE_SNI_PORT") == s.Text("ROUTER_SERVICE_NO_SNI_PORT") {
		problems = append(problems, errors.New("set ROUTER_SERVICE_SNI_PORT and ROUTER_SERVICE_NO_SNI_PORT: they must be different ports"))
	}
	if (s.Text("ROUTER_METRICS_TLS_CERT_FILE") == "") != (s.Text("ROUTER_METRICS_TLS_KEY_FILE") == "") {
		problems = append(problems, errors.New("set ROUTER_METRICS_TLS_CERT_FILE and ROUTER_METRICS_TLS_KEY_FILE: set both or neither"))
	}
	return s, errors.Join(problems...)
}

// Text returns a variable's value. If the variable is not set and has no default, Text returns "".
func (s Settings) Text(name string) string { return s.values[name] }

// On reports whether a variable is true.
func (s Settings) On(name string) bool { return isTrue(s.values[name]) }

// Number returns the value of a numeric variable. If the variable is not set, Number returns 0.
func (s Settings) Number(name string) int {
	number, _ := strconv.Atoi(s.values[name])
	return number
}

// List returns the elements of a variable whose value is a list separated by commas or spaces.
func (s Settings) List(name string) []string {
	return strings.FieldsFunc(s.values[name], func(r rune) bool { return r == ',' || r == ' ' || r == '\t' || r == '\n' })
}

// Duration returns the value of a variable whose value is in HAProxy's duration format.
func (s Settings) Duration(name string) time.Duration {
	d, _ := ParseDuration(s.values[name])
	return d
}

// Labels returns a variable's value as a label selector. If the variable is not set, the selector
// matches everything.
func (s Settings) Labels(name string) labels.Selector {
	selector, err := labels.Parse(s.values[name])
	if err != nil {
		return labels.Nothing()
	}
	return selector
}

// With returns a copy of the settings in which the given values replace the previous ones.
func (s Settings) With(values map[string]string) Settings {
	changed := maps.Clone(s.values)
	maps.Copy(changed, values)
	return Settings{changed}
}

// units contains HAProxy's time units. A number without a unit is in milliseconds.
var units = map[string]time.Duration{
	"us": time.Microsecond, "ms": time.Millisecond, "": time.Millisecond, "s": time.Second, "m": time.Minute, "h": time.Hour, "d": 24 * time.Hour,
}

// longest is the maximum value of HAProxy's timers: 2^31-1 milliseconds.
const longest = (1<<31 - 1) * time.Millisecond

// ParseDuration parses a duration in HAProxy's format: a number without a sign or leading zero,
// followed by us, ms, s, m, h or d. A number without a unit is in milliseconds. ok is false for all
// other strings and for durations that exceed HAProxy's maximum.
func ParseDuration(text string) (d time.Duration, ok bool) {
	digits := strings.TrimRight(text, "usmhd")
	unit, ok := units[text[len(digits):]]
	number, err := strconv.ParseUint(digits, 10, 63)
	if !ok || err != nil || number == 0 || digits[0] == '0' || digits[0] == '+' || number > uint64(longest/unit) {
		return 0, false
	}
	return time.Duration(number) * unit, true
}

func isTrue(value string) bool { return value == "true" || value == "TRUE" }

// kind defines which values of a variable are valid.
type kind struct {
	want  string
	valid func(string) bool
}

func flag() kind {
	return kind{"true or false", func(v string) bool { return slices.Contains([]string{"true", "TRUE", "false", "FALSE"}, v) }}
}

func duration() kind {
	return kind{"a time such as 500ms, 5s or 1h", func(v string) bool { _, ok := ParseDuration(v); return ok }}
}

func number(minimum, maximum int) kind {
	return kind{fmt.Sprintf("a number from %d to %d", minimum, maximum), func(v string) bool {
		n, err := strconv.Atoi(v)
		return err == nil && n >= minimum && n <= maximum
	}}
}

func port() kind { return number(1, 65535) }

func oneOf(values ...string) kind {
	return kind{"one of " + strings.Join(values, ", "), func(v string) bool { return slices.Contains(values, v) }}
}

func selector() kind {
	return kind{"a label selector such as env=prod,tier!=test", func(v string) bool { _, err := labels.Parse(v); return err == nil }}
}

func address() kind {
	return kind{"an address and a port such as 0.0.0.0:1936", func(v string) bool { _, _, err := net.SplitHostPort(v); return err == nil }}
}

// letters accepts values that consist only of the allowed characters.
func letters(want, allowed string) kind {
	return kind{want, func(v string) bool { return strings.Trim(v, allowed) == "" }}
}

func word() kind {
	return kind{"a name of lower-case letters, digits and dashes", func(v string) bool { return len(validation.IsDNS1123Label(v)) == 0 }}
}

func domain() kind {
	return kind{"a domain such as apps.example.com", func(v string) bool { return len(validation.IsDNS1123Subdomain(v)) == 0 }}
}

func text() kind {
	return kind{"one line of text", func(v string) bool { return !strings.ContainsAny(v, "\n\r\x00") }}
}

func anyText() kind { return kind{"", func(string) bool { return true }} }
