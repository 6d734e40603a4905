package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/kubectl/pkg/cmd/util"
)

// concept is an entry in the output of `oc types`. short is the short name of its resource, or "".
type concept struct{ name, short, text string }

// concepts contains the concepts that `oc types` explains.
var concepts = []concept{
	{"Projects", "project", "A namespace with its own members, permissions and quotas. All other objects of an application are in a project."},
	{"Users and Groups", "user", "The server's record of a user who has logged in. Roles are granted to users and groups, in a project or in the whole cluster."},
	{"Roles and Bindings", "rolebinding", "A role is a list of actions on kinds of objects. A binding grants it to users, groups and service accounts."},
	{"Security Context Constraints", "scc", "What a pod can use: users, capabilities, volumes, the host's network. One of them applies to each pod."},
	{"Containers", "", "A program with everything it needs, started from an image and isolated from others."},
	{"Images", "image", "What containers start from: layers of files, and the settings to run them."},
	{"Image Streams", "is", "A name for images that change: each tag of a stream refers to an image and has a history. Builds and deployments follow tags."},
	{"Pods", "pod", "Containers that run together on one node, with one address and the same volumes. The smallest unit that runs."},
	{"Labels", "", "Names and values that are attached to objects. Selectors match them: a service selects its pods, for example."},
	{"Volumes", "pvc", "Directories of a pod that can outlive its containers. A claim requests a permanent one."},
	{"Replication Controllers", "rc", "Keep a number of identical pods running."},
	{"Deployment Configurations", "dc", "How an application is deployed: the triggers, the pods, and the strategy that replaces old pods."},
	{"Services", "service", "One address for pods that come and go. It distributes traffic to them."},
	{"Routes", "route", "A public host name for a service, with or without TLS."},
	{"Build Configurations", "bc", "How an image is built from source code, the triggers, and where it is pushed."},
	{"Builds", "build", "One run of a build configuration."},
	{"Templates", "template", "Objects with parameters that are created together."},
	{"Service Accounts", "sa", "Accounts for programs. Pods use them to authenticate to the server."},
	{"Secrets", "secret", "Passwords, keys and certificates, which pods use as files or environment variables."},
	{"Quotas", "quota", "Limits on the resources of a project. A cluster quota counts several projects together."},
}

// newTypes returns the `oc types` command. As in OpenShift 3, the command prints its text and exits
// with status 1.
func newTypes(streams genericiooptions.IOStreams) *cobra.Command {
	return &cobra.Command{
		Use:   "types",
		Short: "An introduction to concepts and types",
		Long:  "Explain what the objects of the platform are and how they relate to each other.",
		Args:  cobra.NoArgs,
		Run: func(*cobra.Command, []string) {
			fmt.Fprint(streams.Out, explainConcepts())
			util.CheckErr(util.ErrExit)
		},
	}
}

func explainConcepts() string {
	var out strings.Builder
	out.WriteString("The concepts of the platform, and the names with which \"oc get\" lists them.\n")
	for _, c := range concepts {
		title := c.name
		if c.short != "" {
			title += " [" + c.short + "]"
		}
		fmt.Fprintf(&out, "\n* %s:\n", title)
		line := "   "
		for word := range strings.FieldsSeq(c.text) {
			const width = 78
			if len(line)+len(word) >= width {
				out.WriteString(line + "\n")
				line = "   "
			}
			line += " " + word
		}
		out.WriteString(line + "\n")
	}
	out.WriteString("\nThe fields of a kind: oc explain KIND. Every kind: oc api-resources.\n")
	return out.String()
}
