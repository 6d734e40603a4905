package cli

import (
	"regexp"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// rename writes name where the help of a command and of those below it says kubectl.
func rename(command *cobra.Command, name string) {
	for _, text := range []*string{&command.Short, &command.Long, &command.Example, &command.Deprecated} {
		*text = renameText(*text, name)
	}
	command.Flags().VisitAll(func(flag *pflag.Flag) { flag.Usage = renameText(flag.Usage, name) })
	for _, child := range command.Commands() {
		rename(child, name)
	}
}

// word matches kubectl with everything that makes it a part of something longer: an address, an
// annotation, a file name.
var word = regexp.MustCompile(`[\w./:-]*kubectl[\w./:-]*`)

// completion matches the functions and files of shell completion, which are named like the program.
var completion = regexp.MustCompile(`(^__start_|/_|completion\.d/)kubectl$`)

// renameText replaces the program kubectl by name, and leaves what only contains the word, such as
// kubectl.kubernetes.io/last-applied-configuration.
func renameText(text, name string) string {
	return word.ReplaceAllStringFunc(text, func(found string) string {
		bare := strings.TrimRight(found, ".:")
		if bare != "kubectl" && !completion.MatchString(bare) {
			return found
		}
		return strings.TrimSuffix(bare, "kubectl") + name + found[len(bare):]
	})
}
