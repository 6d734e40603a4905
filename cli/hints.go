package cli

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/kubectl/pkg/cmd/util"
)

// noKind matches the message that kubectl prints for a manifest of an unknown kind if the user is
// not allowed to list CustomResourceDefinitions.
var noKind = regexp.MustCompile(`error validating data: failed to check CRD: .*`)

// withHint rewrites an error message so that it describes the user's mistake instead of the
// client's requests, and adds a remedy.
func withHint(message string) string {
	const kinds = "to list the kinds of the server, use: oc api-resources"
	if noKind.MatchString(message) {
		return noKind.ReplaceAllString(message, "it contains a kind that the server does not have; check apiVersion and kind; "+kinds)
	}
	message = strings.ReplaceAll(message, "ensure CRDs are installed first", kinds)
	if strings.Contains(message, `User "system:anonymous"`) || strings.Contains(message, "You must be logged in to the server") {
		message = strings.TrimSuffix(message, "\n") + "\nYou are not logged in; log in with: oc login"
	}
	return message
}

// suggestCommands makes commands with subcommands suggest similar names for an unknown subcommand,
// as cobra does for the root command.
func suggestCommands(command *cobra.Command) {
	for _, child := range command.Commands() {
		suggestCommands(child)
	}
	if !command.HasParent() || !command.HasAvailableSubCommands() || command.Args != nil || strings.TrimSuffix(command.Use, " SUBCOMMAND") != command.Name() {
		return
	}
	command.Args = func(command *cobra.Command, args []string) error {
		if len(args) == 0 {
			return nil
		}
		text := fmt.Sprintf("unknown command %q for %q", args[0], command.CommandPath())
		if command.SuggestionsMinimumDistance <= 0 {
			command.SuggestionsMinimumDistance = 2
		}
		if near := command.SuggestionsFor(args[0]); len(near) > 0 {
			text += "\n\nDid you mean this?\n\t" + strings.Join(near, "\n\t")
		}
		return util.UsageErrorf(command, "%s", text)
	}
}
