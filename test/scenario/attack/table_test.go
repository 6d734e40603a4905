package attack

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
)

// cell is one permission: a verb on a resource or path in a scope. Resources are named as in RBAC,
// such as pods/exec. A name of the form name[x] means the single object x.
type cell struct{ scope, verb, group, resource string }

func (c cell) String() string {
	if c.scope == "path" {
		return c.verb + " " + c.resource
	}
	return fmt.Sprintf("%s %s %s in scope %s", c.verb, groupName(c.group), c.resource, c.scope)
}

type rights map[cell]bool

// table is the content of the file with the expected permissions. The comment at the top of the
// file describes its format.
type table struct {
	// comments contains the lines that begin with #, keyed by section. Comments above the first
	// section have the key "".
	comments map[string][]string
	lines    map[string][]string
}

func readTable(file string) (table, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return table{}, err
	}
	t, section := table{map[string][]string{}, map[string][]string{}}, ""
	for line := range strings.Lines(string(content)) {
		line = strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(line, "["):
			section, _, _ = strings.Cut(strings.Trim(line, "[]"), ":")
			t.lines[section] = []string{}
		case strings.HasPrefix(line, "#"):
			t.comments[section] = append(t.comments[section], line)
		case line != "":
			t.lines[section] = append(t.lines[section], line)
		}
	}
	return t, nil
}

// section contains the lines of one section of the table.
type section struct {
	name, base string
	lines      []string
}

// writeTable writes the table to a file. It keeps the comments of the former table.
func writeTable(file string, former table, sections []section) error {
	var text strings.Builder
	write := func(lines ...string) {
		for _, line := range lines {
			fmt.Fprintln(&text, line)
		}
	}
	write(former.comments[""]...)
	for _, s := range sections {
		title := "[" + s.name + "]"
		if s.base != "" {
			title = "[" + s.name + ": " + s.base + "]"
		}
		write("", title)
		write(former.comments[s.name]...)
		write(s.lines...)
	}
	return os.WriteFile(file, []byte(text.String()), 0o644)
}

// verbSet is a short name for a set of verbs.
type verbSet struct {
	name  string
	verbs []string
}

// verbSets contains the verb sets that bootstrap/policy/roles.txt defines.
var verbSets = []verbSet{
	{"ALL", []string{"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"}},
	{"RO", []string{"get", "list", "watch"}},
}

func shorten(verbs []string) string {
	slices.Sort(verbs)
	for _, set := range verbSets {
		lacks := func(verb string) bool { return !slices.Contains(verbs, verb) }
		if slices.ContainsFunc(set.verbs, lacks) {
			continue
		}
		rest := slices.DeleteFunc(slices.Clone(verbs), func(verb string) bool { return slices.Contains(set.verbs, verb) })
		return strings.Join(append([]string{set.name}, rest...), ",")
	}
	return strings.Join(verbs, ",")
}

func lengthen(text string) (verbs []string) {
	for verb := range strings.SplitSeq(text, ",") {
		at := slices.IndexFunc(verbSets, func(set verbSet) bool { return set.name == verb })
		if at >= 0 {
			verbs = append(verbs, verbSets[at].verbs...)
			continue
		}
		verbs = append(verbs, verb)
	}
	return verbs
}

func groupName(group string) string {
	if group == "" {
		return "core"
	}
	return group
}

// lines formats permissions. Resources with the same scope, verb set and group share a line. Each
// line begins with prefix.
func (r rights) lines(prefix string) (lines []string) {
	type place struct{ scope, group, resource string }
	verbs := map[place][]string{}
	for right := range r {
		at := place{right.scope, groupName(right.group), right.resource}
		verbs[at] = append(verbs[at], right.verb)
	}
	resources := map[string][]string{}
	for at, list := range verbs {
		front := fmt.Sprintf("%s%-8s %-12s %-26s", prefix, at.scope, shorten(list), at.group)
		resources[front] = append(resources[front], at.resource)
	}
	for _, front := range slices.Sorted(maps.Keys(resources)) {
		slices.Sort(resources[front])
		lines = append(lines, wrap(front, resources[front])...)
	}
	return lines
}

// wrap appends words to a line that begins with front. If a line would become too long, wrap starts
// another line with the same beginning.
func wrap(front string, words []string) (lines []string) {
	const width = 150
	line := front
	for _, word := range words {
		if len(line)+1+len(word) > width && line != front {
			lines = append(lines, line)
			line = front
		}
		line += " " + word
	}
	return append(lines, line)
}

// readRights parses lines in the format of the lines method. without contains the permissions from
// lines that begin with "-", and with contains all other permissions.
func readRights(lines []string) (with, without rights, err error) {
	with, without = rights{}, rights{}
	for _, line := range lines {
		into := with
		rest, minus := strings.CutPrefix(line, "- ")
		if minus {
			into = without
		}
		words := strings.Fields(rest)
		if len(words) < 4 {
			return nil, nil, fmt.Errorf("line %q is not SCOPE VERBS GROUP RESOURCES", line)
		}
		group := words[2]
		if group == "core" {
			group = ""
		}
		for _, verb := range lengthen(words[1]) {
			for _, resource := range words[3:] {
				into[cell{words[0], verb, group, resource}] = true
			}
		}
	}
	return with, without, nil
}
