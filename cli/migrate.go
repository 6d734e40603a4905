package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	imagev1 "github.com/openshift/api/image/v1"
	imageclient "github.com/openshift/client-go/image/clientset/versioned/typed/image/v1"
	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/util/retry"
	"k8s.io/kubectl/pkg/cmd/util"
)

// newMigrate makes `oc adm migrate`.
func newMigrate(factory util.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	command := &cobra.Command{
		Use: "migrate", Short: "Migrate data in the cluster", Long: "Change many objects at once when something that they name has moved.",
		Run: util.DefaultSubCommandRun(streams.ErrOut),
	}
	command.AddCommand(newMigrateReferences(factory, streams))
	return command
}

// referenceMapping replaces registries and names of images. A * stands for any registry or name, and on the right for the one that was there.
type referenceMapping struct{ fromRegistry, fromName, toRegistry, toName string }

// parseReferenceMapping reads REGISTRY/NAME=REGISTRY/NAME.
func parseReferenceMapping(text string) (m referenceMapping, err error) {
	from, to, found := strings.Cut(text, "=")
	var ok, okay bool
	m.fromRegistry, m.fromName, ok = strings.Cut(from, "/")
	m.toRegistry, m.toName, okay = strings.Cut(to, "/")
	wrong := func(why string) (referenceMapping, error) { return m, fmt.Errorf("mapping %q: %s", text, why) }
	switch {
	case !found || !ok || !okay || slices.Contains([]string{m.fromRegistry, m.fromName, m.toRegistry, m.toName}, ""):
		return wrong("must be REGISTRY/NAME=REGISTRY/NAME, where * stands for any")
	case m.fromName == "*" != (m.toName == "*"):
		return wrong("names must be * on both sides or on none")
	case m.fromRegistry == "*" && m.fromName == "*":
		return wrong("at least the registry or the name that is replaced must be given")
	case strings.ContainsAny(strings.ReplaceAll(from+to, "*", ""), "@ ") || strings.ContainsAny(m.fromName+m.toName, ":"):
		return wrong("tags and digests stay as they are: leave them out")
	}
	return m, nil
}

// replace gives the reference that takes the place of another, the same if the mapping is not for it. Tags and digests stay.
func (m referenceMapping) replace(reference string) string {
	registry, rest, found := strings.Cut(reference, "/")
	if !found {
		return reference
	}
	name, suffix := rest, ""
	if at := strings.IndexAny(rest, ":@"); at >= 0 {
		name, suffix = rest[:at], rest[at:]
	}
	if m.fromRegistry != "*" && m.fromRegistry != registry || m.fromName != "*" && m.fromName != name {
		return reference
	}
	if m.toRegistry != "*" {
		registry = m.toRegistry
	}
	if m.toName != "*" {
		name = m.toName
	}
	return registry + "/" + name + suffix
}

// references is `oc adm migrate image-references`.
type references struct {
	client   imageclient.ImageV1Interface
	out      io.Writer
	mappings []referenceMapping

	namespace string
	include   []string
	confirm   bool

	total, unchanged, migrated, failed int
}

func newMigrateReferences(factory util.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	r := &references{out: streams.Out}
	command := &cobra.Command{
		Use: "image-references REGISTRY/NAME=REGISTRY/NAME...", Short: "Update embedded image references",
		Long: `Replace the registry or the name in the references of images and image streams, after their images have moved.

A * on the left stands for any registry or any name, on the right for what was there; tags and digests stay. The first mapping that fits counts. Without
--confirm it is only shown what would change.`,
		Example: `  # What would change when a registry gets another name
  oc adm migrate image-references 'old.example.com/*=new.example.com/*'

  # Do it, in one project
  oc adm migrate image-references 'old.example.com/*=new.example.com/*' --include=imagestreams -n shop --confirm`,
		Run: func(command *cobra.Command, args []string) {
			config, err := factory.ToRESTConfig()
			util.CheckErr(err)
			r.client, err = imageclient.NewForConfig(config)
			util.CheckErr(err)
			if flag := command.Flag("namespace"); flag != nil && flag.Changed {
				r.namespace = flag.Value.String()
			}
			util.CheckErr(r.run(command.Context(), args))
		},
	}
	flags := command.Flags()
	flags.StringSliceVar(&r.include, "include", []string{"imagestreams", "images"}, "What is looked at: imagestreams, images.")
	flags.BoolVar(&r.confirm, "confirm", false, "Change it.")
	return command
}

func (r *references) run(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return errors.New("name at least one mapping as REGISTRY/NAME=REGISTRY/NAME")
	}
	for _, arg := range args {
		mapping, err := parseReferenceMapping(arg)
		if err != nil {
			return err
		}
		r.mappings = append(r.mappings, mapping)
	}
	for _, kind := range r.include {
		var err error
		switch kind {
		case "images", "image":
			err = r.images(ctx)
		case "imagestreams", "imagestream", "is":
			err = r.streams(ctx)
		default:
			err = fmt.Errorf("--include %q is neither imagestreams nor images", kind)
		}
		if err != nil {
			return err
		}
	}
	trial := ""
	if !r.confirm {
		trial = " (dry run)"
	}
	fmt.Fprintf(r.out, "summary%s: total=%d errors=%d ignored=0 unchanged=%d migrated=%d\n", trial, r.total, r.failed, r.unchanged, r.migrated)
	if !r.confirm && r.migrated > 0 {
		fmt.Fprintln(r.out, "to migrate these resources, run with --confirm")
	}
	if r.failed > 0 {
		return fmt.Errorf("%d resources failed to migrate", r.failed)
	}
	return nil
}

// update replaces a reference and says whether it was another.
func (r *references) update(reference *string) bool {
	for _, mapping := range r.mappings {
		if next := mapping.replace(*reference); next != *reference {
			*reference = next
			return true
		}
	}
	return false
}

// count notes what became of an object.
func (r *references) count(name string, changed bool, err error) {
	r.total++
	switch {
	case err != nil:
		r.failed++
		fmt.Fprintf(r.out, "error: %s: %v\n", name, err)
	case changed:
		r.migrated++
		verb := map[bool]string{true: "migrated", false: "would migrate"}[r.confirm]
		fmt.Fprintf(r.out, "%s %s\n", verb, name)
	default:
		r.unchanged++
	}
}

func (r *references) images(ctx context.Context) error {
	images, err := r.client.Images().List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for _, image := range images.Items {
		changed := r.update(&image.DockerImageReference)
		if changed && r.confirm {
			err = retry.RetryOnConflict(retry.DefaultBackoff, func() error {
				current, err := r.client.Images().Get(ctx, image.Name, metav1.GetOptions{})
				if err == nil && r.update(&current.DockerImageReference) {
					_, err = r.client.Images().Update(ctx, current, metav1.UpdateOptions{})
				}
				return err
			})
		}
		r.count("images/"+image.Name, changed, err)
	}
	return nil
}

func (r *references) streams(ctx context.Context) error {
	streams, err := r.client.ImageStreams(r.namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for _, stream := range streams.Items {
		spec, status := r.spec(&stream), r.status(&stream)
		var err error
		if r.confirm && (spec || status) {
			err = r.migrate(ctx, stream.Namespace, stream.Name)
		}
		r.count(fmt.Sprintf("imagestreams/%s -n %s", stream.Name, stream.Namespace), spec || status, err)
	}
	return nil
}

// migrate changes the specification and the status of a stream.
func (r *references) migrate(ctx context.Context, namespace, name string) error {
	client := r.client.ImageStreams(namespace)
	change := func(change func(*imagev1.ImageStream) bool, store func(context.Context, *imagev1.ImageStream, metav1.UpdateOptions) (*imagev1.ImageStream, error)) error {
		return retry.RetryOnConflict(retry.DefaultBackoff, func() error {
			current, err := client.Get(ctx, name, metav1.GetOptions{})
			if err == nil && change(current) {
				_, err = store(ctx, current, metav1.UpdateOptions{})
			}
			return err
		})
	}
	// The status goes first: a new specification lets tags be imported again, which the old status would hide.
	return errors.Join(change(r.status, client.UpdateStatus), change(r.spec, client.Update))
}

func (r *references) spec(stream *imagev1.ImageStream) (changed bool) {
	changed = r.update(&stream.Spec.DockerImageRepository)
	for i := range stream.Spec.Tags {
		if from := stream.Spec.Tags[i].From; from != nil && from.Kind == "DockerImage" {
			changed = r.update(&from.Name) || changed
		}
	}
	return changed
}

func (r *references) status(stream *imagev1.ImageStream) (changed bool) {
	for i := range stream.Status.Tags {
		for j := range stream.Status.Tags[i].Items {
			changed = r.update(&stream.Status.Tags[i].Items[j].DockerImageReference) || changed
		}
	}
	return changed
}
