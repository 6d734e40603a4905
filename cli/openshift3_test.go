package cli

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// openshift3 is the path of a table of the commands and flags of OpenShift 3.11's client. Its
// columns are the command, the flags that Slipway's oc has, the flags that it lacks, and the reason
// why it lacks them.
const openshift3 = "../docs/oc-3.11.tsv"

// TestOpenShift3CommandsAreServedAsDocumented checks that oc has exactly the flags that are in the
// table's column of served flags. If OC311_UPDATE=1 is set, it updates the two flag columns
// instead.
func TestOpenShift3CommandsAreServedAsDocumented(t *testing.T) {
	text, err := os.ReadFile(openshift3)
	if err != nil {
		t.Fatal(err)
	}
	root := Tree("oc")
	lines := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	commands, flags := [2]int{}, [2]int{} // total number, and number of served commands or flags
	for number, line := range lines {
		if number == 0 {
			continue
		}
		columns := strings.Split(line, "\t")
		if len(columns) != 4 {
			t.Errorf("%s:%d: %d columns, want 4", openshift3, number+1, len(columns))
			continue
		}
		names := slices.Concat(strings.Fields(columns[1]), strings.Fields(columns[2]))
		served, missing := sortFlags(commandOf(root, columns[0]), names)
		has, lacks := strings.Join(served, " "), strings.Join(missing, " ")
		isMissing := commandOf(root, columns[0]) == nil
		if has != columns[1] || lacks != columns[2] {
			t.Errorf("%s:%d: %s: served %q, missing %q, want %q and %q; run the test with OC311_UPDATE=1",
				openshift3, number+1, columns[0], columns[1], columns[2], has, lacks)
		}
		if (lacks != "" || isMissing) != (columns[3] != "") {
			t.Errorf("%s:%d: %s: reason %q: a reason is required if the command or a flag is missing, and not allowed otherwise", openshift3, number+1, columns[0], columns[3])
		}
		commands[0]++
		flags[0], flags[1] = flags[0]+len(names), flags[1]+len(served)
		if !isMissing {
			commands[1]++
		}
		lines[number] = fmt.Sprintf("%s\t%s\t%s\t%s", columns[0], has, lacks, columns[3])
	}
	t.Logf("%d of %d commands and %d of %d flags are served", commands[1], commands[0], flags[1], flags[0])
	if os.Getenv("OC311_UPDATE") != "" {
		if err := os.WriteFile(openshift3, []byte(strings.Join(lines, "\n")+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// commandOf returns the command at a path such as "oc adm policy". It returns nil if no such
// command exists, or if the command only prints a replacement.
func commandOf(root *cobra.Command, path string) *cobra.Command {
	command, rest, err := root.Find(strings.Fields(path)[1:])
	if err != nil || len(rest) > 0 || command.Annotations[elsewhereAnnotation] != "" {
		return nil
	}
	return command
}

// sortFlags divides flags into the flags that a command has and the flags that it lacks.
func sortFlags(command *cobra.Command, flags []string) (names, missing []string) {
	slices.Sort(flags)
	for _, name := range flags {
		if command != nil && hasFlag(command, name) {
			names = append(names, name)
		} else {
			missing = append(missing, name)
		}
	}
	return names, missing
}

func hasFlag(command *cobra.Command, name string) bool {
	if strings.TrimLeft(name, "-") == "help" || name == "-h" {
		return true // cobra adds help when a command runs
	}
	if current, _ := oldFlags([]string{"get", name}); current[1] != name {
		return true // the flag was renamed
	}
	for _, set := range []*pflag.FlagSet{command.Flags(), command.InheritedFlags()} {
		if long, ok := strings.CutPrefix(name, "--"); ok && set.Lookup(long) != nil {
			return true
		}
		if short := strings.TrimPrefix(name, "-"); len(short) == 1 && set.ShorthandLookup(short) != nil {
			return true
		}
	}
	return false
}
