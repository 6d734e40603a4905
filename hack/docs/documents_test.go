package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// root is the repository's root folder.
const root = "../.."

// commandLine matches a line in a code block that runs oc, kubectl or slipway.
var commandLine = regexp.MustCompile(`^(?:[$#] )?(?:[A-Z_]+=\S+ )*(?:(?:\./)?bin/)?(oc|kubectl|slipway) (.+)$`)

// words matches the words in a command line, in the shell syntax that the documents use.
var words = regexp.MustCompile(`'[^']*'|"[^"]*"|[|;&<>]+|(?:[^\s'"|;&<>]|'[^']*'|"[^"]*")+`)

func TestCommandsInDocumentsExist(t *testing.T) {
	trees := commandTrees()
	for path, lines := range codeLines(t) {
		for _, line := range lines {
			match := commandLine.FindStringSubmatch(line)
			if match == nil {
				continue
			}
			if problem := check(trees, match[1], split(match[2])); problem != "" {
				t.Errorf("%s: %s\n\t%s", path, problem, line)
			}
		}
	}
}

func TestUnknownCommandsAreReported(t *testing.T) {
	for name, tt := range map[string]struct{ program, line, problem string }{
		"known":           {"oc", "get pods --all-namespaces -o yaml", ""},
		"nested":          {"oc", "adm policy add-role-to-user view ann -n shop", ""},
		"through slipway": {"slipway", "oc get nodes", ""},
		"unknown verb":    {"oc", "gett pods", `oc has no command "gett"`},
		"unknown nested":  {"oc", "adm policy add-role view ann", `oc adm policy has no command "add-role"`},
		"unknown flag":    {"oc", "get pods --every", `oc get has no flag "--every"`},
		"unknown short":   {"slipway", "up -Z", `slipway up has no flag "-Z"`},
		"after a pipe":    {"oc", "get pods | grep --every", ""},
		"alternatives":    {"slipway", "flexvolume install|check", ""},
		"optional":        {"oc", "get pods [--every] --any", `oc get has no flag "--any"`},
		"of the pod":      {"oc", "exec pod -- ls --every", ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := check(commandTrees(), tt.program, split(tt.line)); got != tt.problem {
				t.Errorf("got %q, want %q", got, tt.problem)
			}
		})
	}
}

// split returns the words in a command line before the first shell operator, comment, or `--`. It
// replaces alternatives such as controller|node with the first alternative. It omits words in
// brackets, which are either optional or indexes in a value.
func split(line string) []string {
	all := words.FindAllString(line, -1)
	all = slices.DeleteFunc(all, func(word string) bool { return strings.ContainsAny(word, "[]") })
	if end := slices.IndexFunc(all, func(word string) bool { return word == "--" || strings.ContainsAny(word[:1], "|;&<>#") }); end >= 0 {
		all = all[:end]
	}
	return all
}

// check returns a description of an unknown command or flag in a command line, or "" if the command
// and all of its flags exist.
func check(trees map[string]*cobra.Command, program string, args []string) string {
	if program == "slipway" && len(args) > 0 && trees[args[0]] != nil {
		program, args = args[0], args[1:]
	}
	command, rest, err := trees[program].Find(args)
	arguments := slices.DeleteFunc(slices.Clone(rest), func(word string) bool { return strings.HasPrefix(word, "-") })
	if err != nil || len(arguments) > 0 && command.HasAvailableSubCommands() && !takesArguments(command) {
		if len(arguments) == 0 {
			arguments = args
		}
		return command.CommandPath() + " has no command \"" + arguments[0] + "\""
	}
	for _, word := range rest {
		if !strings.HasPrefix(word, "-") || word == "-" || command.DisableFlagParsing {
			continue
		}
		name, _, _ := strings.Cut(word, "=")
		if !hasFlag(command, name) {
			return command.CommandPath() + " has no flag \"" + name + "\""
		}
	}
	return ""
}

// takesArguments reports whether a command that has subcommands can also run without a subcommand.
func takesArguments(command *cobra.Command) bool {
	return command.Runnable() && strings.ContainsAny(command.Use, "([-") // such as `create -f FILE`
}

func hasFlag(command *cobra.Command, word string) bool {
	command.InitDefaultHelpFlag()
	if name, long := strings.CutPrefix(word, "--"); long {
		return command.Flag(name) != nil || name == "loglevel"
	}
	short := word[1:2]
	return command.Flags().ShorthandLookup(short) != nil || command.InheritedFlags().ShorthandLookup(short) != nil
}

// codeLines returns the lines in code blocks, keyed by document path. It joins a line that ends
// with a backslash with the next line.
func codeLines(t *testing.T) map[string][]string {
	t.Helper()
	all := map[string][]string{}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name := entry.Name(); entry.IsDir() && (name == "bin" || strings.HasPrefix(name, ".") && name != "..") {
			return fs.SkipDir
		}
		if filepath.Ext(path) != ".md" {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		all[strings.TrimPrefix(path, root+"/")] = code(strings.ReplaceAll(string(text), "\\\n", " "))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// code returns the lines in a document's fenced and indented code blocks.
func code(document string) (lines []string) {
	fenced := false
	for line := range strings.Lines(document) {
		line = strings.TrimRight(line, "\n")
		switch {
		case strings.HasPrefix(strings.TrimSpace(line), "```"):
			fenced = !fenced
		case fenced, strings.HasPrefix(line, "    "):
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return lines
}
