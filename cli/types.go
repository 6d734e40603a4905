package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// concept is one of the things that people who use the platform meet.
type concept struct{ name, short, text string }

// concepts are what `oc types` explains, from the outside in.
var concepts = []concept{
	{"Projects", "project", "A space of its own for the work of some people: what is in it, who may do what in it, and how much of the cluster it may use."},
	{"Users and groups", "user", "Who the server takes you for after a login. Roles are given to users and groups, in a project or in the whole cluster."},
	{"Roles and bindings", "rolebinding", "A role is a list of actions on kinds of objects; a binding gives it to somebody."},
	{"Security context constraints", "scc", "What a pod may ask of its node: users, capabilities, volumes, the host's network. Each pod is made under one of them."},
	{"Containers", "", "A program with everything it needs, started from an image and kept apart from others."},
	{"Images", "image", "What containers are started from: layers of files, and how to run them."},
	{"Image streams", "is", "A name for images that change: each tag of a stream is one image now, and has a history. Builds and deployments follow tags."},
	{"Pods", "pod", "Containers that run together on one node, with one address and the same volumes. The smallest thing that is run."},
	{"Labels", "", "Names and values on objects, by which others select them: a service its pods, for example."},
	{"Volumes", "pvc", "Directories of a pod that can outlive its containers. A claim asks for one that lasts."},
	{"Replication controllers", "rc", "Keep a number of equal pods running."},
	{"Deployment configurations", "dc", "How an application is brought to a new version: what starts that, what its pods are, and in which steps the old ones go."},
	{"Services", "service", "One address for pods that come and go; traffic is shared among them."},
	{"Routes", "route", "A name on the outside for a service, with or without TLS."},
	{"Build configurations", "bc", "How an image is made from source code, what starts that, and where it is pushed."},
	{"Builds", "build", "One run of a build configuration."},
	{"Templates", "template", "Objects with parameters, to be made together as often as they are needed."},
	{"Service accounts", "sa", "Who programs are: pods use one to ask the server."},
	{"Secrets", "secret", "Passwords, keys and certificates, which pods get as files or variables."},
	{"Quotas", "quota", "How much a project may have. A cluster quota counts several projects together."},
}

// newTypes returns `oc types`.
func newTypes(streams genericiooptions.IOStreams) *cobra.Command {
	return &cobra.Command{
		Use:   "types",
		Short: "An introduction to concepts and types",
		Long:  "Explain what the objects of the platform are and how they belong together.",
		Args:  cobra.NoArgs,
		Run: func(*cobra.Command, []string) {
			fmt.Fprint(streams.Out, explainConcepts())
		},
	}
}

func explainConcepts() string {
	var out strings.Builder
	out.WriteString("What the platform is made of, and by which name \"oc get\" lists it.\n")
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
