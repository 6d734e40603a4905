package build

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	buildv1 "github.com/openshift/api/build/v1"
	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/dynamic"
	"k8s.io/kubectl/pkg/cmd/util"

	"github.com/slipway-platform/slipway/apigroup/build/instantiate"
	"github.com/slipway-platform/slipway/cli/objects"
)

// buildChain holds the state of `oc adm build-chain`.
type buildChain struct {
	client    dynamic.Interface
	namespace string
	out       io.Writer

	output                    string
	all, triggerOnly, reverse bool
}

// NewChain returns the `oc adm build-chain` command.
func NewChain(factory util.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	b := &buildChain{out: streams.Out}
	command := &cobra.Command{
		Use: "build-chain IMAGESTREAMTAG", Short: "Output the inputs and dependencies of your builds",
		Long: `Print the builds that use a tag of an image stream, and the builds that use their output. With --reverse, print the inputs instead.

The default tag is latest. To draw the graph: oc adm build-chain ruby -o dot | dot -T svg.`,
		Example: `  oc adm build-chain ruby:2.5
  oc adm build-chain ruby:2.5 --all -o dot
  oc adm build-chain app --reverse --trigger-only=false`,
		Run: func(command *cobra.Command, args []string) {
			if len(args) != 1 || args[0] == "" {
				util.CheckErr(util.UsageErrorf(command, "specify one image stream tag"))
			}
			util.CheckErr(b.connect(factory))
			util.CheckErr(b.run(command.Context(), args[0]))
		},
	}
	flags := command.Flags()
	flags.StringVarP(&b.output, "output", "o", "", "Output format: dot or json. By default, an indented list.")
	flags.BoolVar(&b.all, "all", false, "Include the build configs of all projects.")
	flags.BoolVar(&b.triggerOnly, "trigger-only", true, "Include only inputs that trigger builds. Otherwise, include all inputs.")
	flags.BoolVar(&b.reverse, "reverse", false, "Print the inputs of the tag, instead of the builds that use it.")
	return command
}

func (b *buildChain) connect(factory util.Factory) (err error) {
	if b.namespace, _, err = factory.ToRawKubeConfigLoader().Namespace(); err != nil {
		return err
	}
	b.client, err = factory.DynamicClient()
	return err
}

// link is an image stream tag or a build config. Next contains its successors in the chain.
type link struct {
	Kind      string  `json:"kind"`
	Namespace string  `json:"namespace"`
	Name      string  `json:"name"`
	Next      []*link `json:"next,omitempty"`
}

// vertex is a node of the chain graph. Its kind is istag or bc.
type vertex struct{ kind, namespace, name string }

func (b *buildChain) run(ctx context.Context, tag string) error {
	if b.output != "" && b.output != "dot" && b.output != "json" {
		return fmt.Errorf("--output %q must be dot or json", b.output)
	}
	tag = strings.TrimPrefix(strings.TrimPrefix(tag, "istag/"), "imagestreamtag/")
	root := vertex{"istag", b.namespace, tag}
	if namespace, name, ok := strings.Cut(tag, "/"); ok {
		root.namespace, root.name = namespace, name
	}
	if !strings.Contains(root.name, ":") {
		root.name += ":latest"
	}
	namespace := b.namespace
	if b.all {
		namespace = metav1.NamespaceAll
	}
	configs, err := objects.List[buildv1.BuildConfig](ctx, b.client, buildv1.GroupVersion.WithResource("buildconfigs"), namespace, metav1.ListOptions{})
	if err != nil {
		return err
	}
	edges := b.edges(configs)
	if !contains(edges, root) {
		return fmt.Errorf("no build config %s image stream tag %q of project %q; to include all projects, use --all; to include all inputs, use --trigger-only=false",
			map[bool]string{false: "uses", true: "produces"}[b.reverse], root.name, root.namespace)
	}
	return b.print(follow(root, edges, nil))
}

// contains reports whether any edge starts or ends at a vertex.
func contains(edges map[vertex][]vertex, at vertex) bool {
	if len(edges[at]) > 0 {
		return true
	}
	for _, next := range edges {
		if slices.Contains(next, at) {
			return true
		}
	}
	return false
}

// edges returns the successors of each vertex. If --reverse is set, it returns the predecessors
// instead.
func (b *buildChain) edges(configs []buildv1.BuildConfig) map[vertex][]vertex {
	edges := map[vertex][]vertex{}
	add := func(from, to vertex) {
		if b.reverse {
			from, to = to, from
		}
		if !slices.Contains(edges[from], to) {
			edges[from] = append(edges[from], to)
		}
	}
	for i := range configs {
		config := &configs[i]
		self := vertex{"bc", config.Namespace, config.Name}
		for _, input := range b.inputs(config) {
			if vertex, ok := tagVertex(config.Namespace, input); ok {
				add(vertex, self)
			}
		}
		if vertex, ok := tagVertex(config.Namespace, config.Spec.Output.To); ok {
			add(self, vertex)
		}
	}
	return edges
}

// inputs returns all input images of a build config or, with --trigger-only, the images that
// trigger builds.
func (b *buildChain) inputs(config *buildv1.BuildConfig) (all []*corev1.ObjectReference) {
	for i := range config.Spec.Triggers {
		if trigger := config.Spec.Triggers[i].ImageChange; trigger != nil {
			all = append(all, instantiate.Watched(config, trigger))
		}
	}
	if b.triggerOnly {
		return all
	}
	all = append(all, instantiate.From(&config.Spec.Strategy))
	for i := range config.Spec.Source.Images {
		all = append(all, &config.Spec.Source.Images[i].From)
	}
	return all
}

// tagVertex returns the vertex for a reference, and false if the reference does not refer to an
// image stream tag. namespace is the default namespace.
func tagVertex(namespace string, reference *corev1.ObjectReference) (vertex, bool) {
	if reference == nil || reference.Kind != instantiate.TagKind {
		return vertex{}, false
	}
	if reference.Namespace != "" {
		namespace = reference.Namespace
	}
	return vertex{"istag", namespace, reference.Name}, true
}

// follow builds the chain that starts at a vertex. above contains the preceding vertices. To break
// cycles, follow adds no successors to a vertex that is already in above.
func follow(at vertex, edges map[vertex][]vertex, above []vertex) *link {
	tree := &link{Kind: at.kind, Namespace: at.namespace, Name: at.name}
	if slices.Contains(above, at) {
		return tree
	}
	for _, next := range edges[at] {
		tree.Next = append(tree.Next, follow(next, edges, append(above, at)))
	}
	return tree
}

func (b *buildChain) print(root *link) error {
	if b.output == "json" {
		text, err := json.MarshalIndent(root, "", "  ")
		if err == nil {
			_, err = fmt.Fprintln(b.out, string(text))
		}
		return err
	}
	single := oneNamespace(root, root.Namespace)
	name := func(l *link) string {
		if single {
			return l.Kind + "/" + l.Name
		}
		return fmt.Sprintf("<%s %s/%s>", l.Namespace, l.Kind, l.Name)
	}
	if b.output == "dot" {
		return errors.Join(b.dot(root, name)...)
	}
	var show func(l *link, depth int) error
	show = func(l *link, depth int) error {
		_, err := fmt.Fprintln(b.out, strings.Repeat("\t", depth)+name(l))
		for _, next := range l.Next {
			err = errors.Join(err, show(next, depth+1))
		}
		return err
	}
	return show(root, 0)
}

func oneNamespace(l *link, namespace string) bool {
	return l.Namespace == namespace && !slices.ContainsFunc(l.Next, func(next *link) bool { return !oneNamespace(next, namespace) })
}

// dot prints the chain in the DOT format.
func (b *buildChain) dot(root *link, name func(*link) string) (problems []error) {
	print := func(format string, args ...any) {
		_, err := fmt.Fprintf(b.out, format+"\n", args...)
		problems = append(problems, err)
	}
	print("digraph %q {", root.Name)
	seen := map[string]bool{}
	var walk func(l *link)
	walk = func(l *link) {
		if line := fmt.Sprintf("  %q;", name(l)); !seen[line] {
			seen[line] = true
			print("%s", line)
		}
		for _, next := range l.Next {
			line := fmt.Sprintf("  %q -> %q;", name(l), name(next))
			walk(next)
			if !seen[line] {
				seen[line] = true
				print("%s", line)
			}
		}
	}
	walk(root)
	print("}")
	return problems
}
