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

	"github.com/slipway-platform/slipway/storage/flexvolume"
)

// strange are option values that take drivers apart which do not take JSON apart, by what is strange about them. touch makes a shell command that leaves a
// file.
func strange(touch func(name string) string) map[string]string {
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
		"new line":             "first\nsecond\ttab",
		"percent":              "%s %n %d %%",
		"dash":                 "-rf",
		"JSON":                 `x","kubernetes.io/readwrite":"ro","y":"{}`,
		"nothing":              "",
	}
}

// options checks that options with strange values, which the driver does not know, do no harm, and that a directory with a strange
// name does none where the driver is told of one.
func (c *checker) options(ctx context.Context) {
	values := strange(func(name string) string { return "touch " + filepath.Join(c.box.injected(), name) })
	known, problem := c.knownVolume(ctx)
	if problem != nil {
		c.result("options", NotTried, problem.Error(), "")
		return
	}
	whole := func(values map[string]string) func(*flexvolume.Mounting) {
		return func(m *flexvolume.Mounting) {
			m.Volume = known.mounting.Volume
			m.Options = maps.Clone(m.Options)
			for number, name := range slices.Sorted(maps.Keys(values)) {
				m.Options[fmt.Sprintf("check%d", number)] = values[name]
			}
		}
	}
	problem = c.strangeLife(ctx, whole(values), known)
	if problem != nil {
		var culprits []string
		for _, name := range slices.Sorted(maps.Keys(values)) {
			if err := c.strangeLife(ctx, whole(map[string]string{name: values[name]}), known); err != nil {
				culprits = append(culprits, name)
				problem = err
			}
		}
		if len(culprits) == 0 {
			culprits = []string{"all of this together"}
		}
		problem = fmt.Errorf("it goes wrong with %s in the value of an option: %w", strings.Join(culprits, ", "), problem)
	}
	c.judge("options", problem, Wrong, "it works beside options with spaces, quotes, shell commands, UTF-8 and JSON in their values",
		"read options with a JSON parser such as jq, and quote every variable of a shell script")
	c.usedOption(ctx)
	c.injected()
}

// usedOption gives the directory that the driver is told of a strange name.
func (c *checker) usedOption(ctx context.Context) {
	if !slices.ContainsFunc(slices.Collect(maps.Values(c.Options)), func(value string) bool { return strings.Contains(value, "{dir}") }) {
		c.result("options-used", NotTried, "no option holds {dir}", "check with an option whose value is a path, such as --options directory={dir}, to have it tried")
		return
	}
	// The slashes of the command make directories of its parts.
	dir := filepath.Join(c.box.data(), `it's a "dir" of Größe & <b>; $(touch `+filepath.Join(c.box.injected(), "used")+`)`)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		c.result("options-used", NotTried, err.Error(), "")
		return
	}
	problem := c.strangeLife(ctx, func(m *flexvolume.Mounting) { c.setOptions(m, dir) }, nil)
	verdict, do := Wrong, "read options with a JSON parser, and quote every variable of a shell script"
	if flexvolume.KindOf(problem) == flexvolume.KindFailure {
		verdict, do = Risk, "it may refuse such values; to take them, "+do
	}
	c.judge("options-used", problem, verdict, "it works with spaces, quotes and UTF-8 in the value of an option that it uses", do)
}

// knownVolume is a volume with a file in it, by which it is known again. A driver that does not keep data has none.
func (c *checker) knownVolume(ctx context.Context) (known *life, err error) {
	l := c.newLife(nil)
	err = l.up(ctx)
	if err == nil {
		err = os.WriteFile(filepath.Join(l.dir, "known"), nil, 0o600)
	}
	if err = errors.Join(err, l.down(ctx), l.up(ctx)); err != nil {
		return nil, errors.Join(err, l.down(ctx))
	}
	l.keeps = exists(filepath.Join(l.dir, "known"))
	return l, l.down(ctx)
}

// strangeLife leads a volume through its life and looks whether it can be written and, if known is not nil, whether it is that volume.
func (c *checker) strangeLife(ctx context.Context, change func(*flexvolume.Mounting), known *life) error {
	l := c.newLife(change)
	problem := l.up(ctx)
	if problem == nil {
		if err := os.WriteFile(filepath.Join(l.dir, "check"), nil, 0o600); err != nil {
			problem = fmt.Errorf("the volume cannot be written: %w", err)
		} else if known != nil && (l.name != known.name || known.keeps && !exists(filepath.Join(l.dir, "known"))) {
			problem = errors.New("it takes another volume than without the option")
		}
	}
	return errors.Join(problem, l.down(ctx))
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// injected says whether the driver has executed what stood in an option.
func (c *checker) injected() {
	files, _ := os.ReadDir(c.box.injected())
	var names []string
	for _, file := range files {
		names = append(names, file.Name())
	}
	var problem error
	if len(names) > 0 {
		problem = fmt.Errorf("it has executed shell commands that stood in option values (%s): whoever makes a volume is root on the machine", strings.Join(names, ", "))
	}
	c.judge("options-executed", problem, Wrong, "it executes nothing that stands in an option", "never use eval, and quote every variable; nothing of the options may become part of a command")
}

// secrets checks that the driver does not show secrets to others.
func (c *checker) secrets(ctx context.Context) {
	secret := []byte("s3cret-" + rand.Text() + " 'ü\"$")
	l := c.newLife(func(m *flexvolume.Mounting) { m.Secrets["slipway-check"] = secret })
	before := len(c.calls)
	problem := l.up(ctx)
	if c.caps.Attach && c.driver.Lacks(flexvolume.OpMount) {
		_ = l.down(ctx)
		c.result("secrets", NotTried, "it lacks mount, which alone is given secrets", "")
		return
	}
	var shown []string
	for _, command := range c.box.processes() {
		if strings.Contains(command, string(secret)) {
			shown = append(shown, strings.ReplaceAll(command, string(secret), "[secret]"))
		}
	}
	if problem = errors.Join(problem, l.down(ctx)); problem != nil {
		c.result("secrets", Wrong, problem.Error(), "work with secrets that have a key you do not know, in base64 as all are")
		return
	}
	leaked := slices.ContainsFunc(c.calls[before:], func(outcome flexvolume.Outcome) bool { return outcome.Leaked })
	switch {
	case leaked:
		c.result("secrets", Wrong, "it prints a secret", "print no secret, not even where something fails: it ends up in logs and events; do not use set -x")
	case len(shown) > 0:
		c.result("secrets", Risk, fmt.Sprintf("a secret is in the command line of a process that it leaves: %q", shown), "hand secrets over in a file or on standard input")
	default:
		c.result("secrets", OK, "it prints no secret", "")
	}
}
