package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/slipway-platform/slipway/cli"
	slipway "github.com/slipway-platform/slipway/cmd/slipway/command"
)

// commandPages adds a page for each top-level command, such as oc/get.md and slipway/up.md.
func commandPages(all pages) error {
	trees := commandTrees()
	for _, program := range []string{"oc", "slipway"} {
		root := trees[program]
		index := &strings.Builder{}
		fmt.Fprintf(index, "# `%s`\n\n%s\n\n", program, root.Short)
		for _, command := range visible(root) {
			fmt.Fprintf(index, "- [`%s %s`](%s.md): %s\n", program, command.Name(), command.Name(), command.Short)
			page := &strings.Builder{}
			writeCommand(page, command, 1)
			all[program+"/"+command.Name()+".md"] = page.String()
		}
		all[program+"/index.md"] = index.String()
	}
	return nil
}

// commandTrees returns the command tree of each program.
func commandTrees() map[string]*cobra.Command {
	return map[string]*cobra.Command{
		"oc":      cli.Tree("oc"),
		"kubectl": cli.Tree("kubectl"),
		"slipway": slipway.New(cli.New("oc"), cli.New("kubectl")),
	}
}

// visible returns the direct subcommands that the help of parent lists, sorted by name.
func visible(parent *cobra.Command) []*cobra.Command {
	var commands []*cobra.Command
	for _, command := range parent.Commands() {
		if command.IsAvailableCommand() && command.Name() != "help" {
			commands = append(commands, command)
		}
	}
	slices.SortFunc(commands, func(a, b *cobra.Command) int { return strings.Compare(a.Name(), b.Name()) })
	return commands
}

// writeCommand writes a command and its subcommands.
func writeCommand(page *strings.Builder, command *cobra.Command, level int) {
	fmt.Fprintf(page, "%s `%s`\n\n", strings.Repeat("#", min(level, 4)), command.CommandPath())
	description := command.Long
	if description == "" {
		description = command.Short
	}
	fmt.Fprintf(page, "%s\n\n", prose(description))
	if command.Runnable() {
		fmt.Fprintf(page, "%s\n\n", block("text", command.UseLine()))
	}
	if command.Example != "" {
		fmt.Fprintf(page, "%s\n\n", block("sh", command.Example))
	}
	var flags []string
	command.LocalFlags().VisitAll(func(flag *pflag.Flag) {
		if !flag.Hidden && flag.Name != "help" {
			flags = append(flags, flagLine(flag))
		}
	})
	if len(flags) > 0 {
		fmt.Fprintf(page, "%s\n\n", strings.Join(flags, "\n"))
	}
	for _, child := range visible(command) {
		writeCommand(page, child, level+1)
	}
}

// flagLine returns a list item that describes a flag.
func flagLine(flag *pflag.Flag) string {
	name := "--" + flag.Name
	if flag.Shorthand != "" {
		name = "-" + flag.Shorthand + ", " + name
	}
	value, usage := pflag.UnquoteUsage(flag)
	if value != "" {
		name += " " + value
	}
	line := fmt.Sprintf("- `%s`: %s", name, strings.Join(strings.Fields(usage), " "))
	if !slices.Contains([]string{"", "false", "[]", "0", "0s", "<nil>"}, flag.DefValue) {
		line += fmt.Sprintf(" Default: `%s`.", flag.DefValue)
	}
	return line
}

// escaper escapes characters that have a special meaning in Markdown.
var escaper = strings.NewReplacer("<", "&lt;", "*", "\\*", "_", "\\_", "[", "\\[")

// prose formats a command's description as paragraphs. A description with indented lines, such as a
// list or an example, becomes a code block.
func prose(description string) string {
	for line := range strings.Lines(description) {
		if strings.HasPrefix(line, " ") || strings.HasPrefix(line, "\t") {
			return block("text", description)
		}
	}
	return escaper.Replace(strings.TrimSpace(description))
}

// block returns text as a fenced code block, so that Markdown syntax in the text has no effect.
func block(language, text string) string {
	return "```" + language + "\n" + strings.Trim(text, "\n") + "\n```"
}
