package conformance

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/slipway-platform/slipway/storage/flexvolume"
)

// unusualValues returns option values, keyed by description. The values break drivers that do not
// use a JSON parser. touch returns a shell command that creates a file.
func unusualValues(touch func(name string) string) map[string]string {
	return map[string]string{
		"spaces":               "  a  b ",
		"single quote":         "it's",
		"double quote":         `say "x"`,
		"backslash":            `back\slash\n\`,
		"command substitution": "$(" + touch("substitution") + ")",
		"backticks":            "`" + touch("backticks") + "`",
		"semicolon":            "; " + touch("semicolon") + " ;",
		"quote and command":    "'; " + touch("quote") + "; '",
		"quotes and command":   `"; ` + touch("quotes") + `; "`,
		"pipe":                 "a | " + touch("pipe") + " & b > /dev/null < c",
		"variable":             "$HOME ${PATH} $$ $*",
		"glob":                 "* ? [a-z] ~ {a,b}",
		"UTF-8":                "Größe 漢字 😀",
		"newline":              "first\nsecond\ttab",
		"percent":              "%s %n %d %%",
		"dash":                 "-rf",
		"JSON":                 `x","kubernetes.io/readwrite":"ro","y":"{}`,
		"nothing":              "",
	}
}

// options checks that unusual values are harmless, both in options that the driver does not use and
// in an option that contains a directory.
func (c *checker) options(ctx context.Context) {
	values := unusualValues(func(name string) string { return "touch " + filepath.Join(c.sandbox.injected(), name) })
	reference, failure := c.referenceVolume(ctx)
	if failure != nil {
		c.result("options", NotTried, failure.Error(), "")
		return
	}
	withOptions := func(values map[string]string) func(*flexvolume.MountRequest) {
		return func(m *flexvolume.MountRequest) {
			m.Volume = reference.request.Volume
			m.Options = maps.Clone(m.Options)
			for number, name := range slices.Sorted(maps.Keys(values)) {
				m.Options[fmt.Sprintf("check%d", number)] = values[name]
			}
		}
	}
	failure = c.runWithOptions(ctx, withOptions(values), reference)
	if failure != nil {
		var badValues []string
		for _, name := range slices.Sorted(maps.Keys(values)) {
			if err := c.runWithOptions(ctx, withOptions(map[string]string{name: values[name]}), reference); err != nil {
				badValues = append(badValues, name)
				failure = err
			}
		}
		if len(badValues) == 0 {
			badValues = []string{"all of these values together"}
		}
		failure = fmt.Errorf("it fails if the value of an option contains %s: %w", strings.Join(badValues, ", "), failure)
	}
	c.check("options", failure, Risk, "it ignores other options with spaces, quotes, shell commands, UTF-8 and JSON in their values",
		"read options with a JSON parser such as jq, and quote every variable of a shell script")
	c.usedOption(ctx)
	c.injected()
}

// usedOption runs a lifecycle in which the driver's options contain a directory with an unusual
// name.
func (c *checker) usedOption(ctx context.Context) {
	if !slices.ContainsFunc(slices.Collect(maps.Values(c.Options)), func(value string) bool { return strings.Contains(value, "{dir}") }) {
		c.result("options-used", NotTried, "no option contains {dir}", "to run this check, use an option whose value is a path, such as --options directory={dir}")
		return
	}
	// The slashes in the command split the path into directories.
	dir := filepath.Join(c.sandbox.data(), `it's a "dir" of Größe & <b>; $(touch `+filepath.Join(c.sandbox.injected(), "used")+`)`)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		c.result("options-used", NotTried, err.Error(), "")
		return
	}
	failure := c.runWithOptions(ctx, func(m *flexvolume.MountRequest) { c.setOptions(m, dir) }, nil)
	remedy := "read options with a JSON parser, and quote every variable of a shell script"
	if flexvolume.KindOf(failure) == flexvolume.KindFailure {
		remedy = "it may reject such values; to support them, " + remedy
	}
	c.check("options-used", failure, Risk, "it works with spaces, quotes and UTF-8 in the value of an option that it uses", remedy)
}

// referenceVolume returns a volume that contains a marker file if the driver keeps data.
func (c *checker) referenceVolume(ctx context.Context) (reference *lifecycle, err error) {
	l := c.newLifecycle(nil)
	err = l.setUp(ctx)
	if err == nil {
		err = write(filepath.Join(l.dir, "known"), nil)
	}
	if err = errors.Join(err, l.tearDown(ctx), l.setUp(ctx)); err != nil {
		return nil, errors.Join(err, l.tearDown(ctx))
	}
	l.keepsData, l.isReadOnly = exists(filepath.Join(l.dir, "known")), readOnly(l.dir)
	return l, l.tearDown(ctx)
}

// runWithOptions runs a lifecycle and writes a file. If reference is not nil, it also checks that
// the volume is the same as the reference.
func (c *checker) runWithOptions(ctx context.Context, modify func(*flexvolume.MountRequest), reference *lifecycle) error {
	l := c.newLifecycle(modify)
	failure := l.setUp(ctx)
	if failure == nil {
		failure = write(filepath.Join(l.dir, "check"), nil)
	}
	if failure == nil && reference != nil {
		failure = reference.compare(l)
	}
	return errors.Join(failure, l.tearDown(ctx))
}

// compare returns an error unless other is the same volume with the same access.
func (l *lifecycle) compare(other *lifecycle) error {
	switch {
	case !l.isReadOnly && readOnly(other.dir):
		return errors.New("it mounts the volume read-only")
	case l.name != other.name || l.keepsData && !exists(filepath.Join(other.dir, "known")):
		return errors.New("it does not use the same volume as without the option")
	}
	return nil
}

// write writes a file to a volume. Read-only storage is not an error, because some drivers provide
// read-only storage by design.
func write(path string, content []byte) error {
	if err := os.WriteFile(path, content, 0o600); err != nil && !errors.Is(err, unix.EROFS) {
		return err
	}
	return nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// injected checks that the driver has not executed any option value.
func (c *checker) injected() {
	files, _ := os.ReadDir(c.sandbox.injected())
	var names []string
	for _, file := range files {
		names = append(names, file.Name())
	}
	var failure error
	if len(names) > 0 {
		failure = fmt.Errorf("it executed shell commands from option values (%s): a user who can create a volume is root on the machine", strings.Join(names, ", "))
	}
	c.check("options-executed", failure, Risk, "it executes no part of an option", "never use eval, and quote every variable; no option may become part of a command")
}

// secrets checks that the driver does not disclose secrets.
func (c *checker) secrets(ctx context.Context) {
	secret := []byte("s3cret-" + rand.Text() + " 'ü\"$")
	l := c.newLifecycle(func(m *flexvolume.MountRequest) { m.Secrets["slipway-check"] = secret })
	firstCall := len(c.calls)
	failure := l.setUp(ctx)
	if c.caps.Attach && c.driver.Unsupported(flexvolume.OpMount) {
		_ = l.tearDown(ctx)
		c.result("secrets", NotTried, "it does not support mount, the only operation that gets secrets", "")
		return
	}
	var commands []string
	for _, command := range c.sandbox.processes() {
		if strings.Contains(command, string(secret)) {
			commands = append(commands, strings.ReplaceAll(command, string(secret), "[secret]"))
		}
	}
	if failure = errors.Join(failure, l.tearDown(ctx)); failure != nil {
		c.result("secrets", Risk, failure.Error(), "accept secrets with unknown keys; values are in base64")
		return
	}
	leaked := slices.ContainsFunc(c.calls[firstCall:], func(outcome flexvolume.TrialResult) bool { return outcome.Leaked })
	switch {
	case leaked:
		c.result("secrets", Risk, "it prints a secret", "do not print secrets, not even in errors: output appears in logs and events; do not use set -x")
	case len(commands) > 0:
		c.result("secrets", Risk, fmt.Sprintf("a secret is in the command line of a process that still runs: %q", commands), "pass secrets in a file or on standard input")
	default:
		c.result("secrets", OK, "it prints no secret", "")
	}
}
