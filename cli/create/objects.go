package create

import (
	"encoding/csv"
	"errors"
	"fmt"
	"strings"

	appsv1 "github.com/openshift/api/apps/v1"
	imagev1 "github.com/openshift/api/image/v1"
	quotav1 "github.com/openshift/api/quota/v1"
	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/kubectl/pkg/cmd/util"
)

// NewClusterQuota returns the `oc create clusterresourcequota` command, with the alias
// clusterquota.
func NewClusterQuota(factory util.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	return Creation{
		Use: "clusterresourcequota NAME --project-label-selector=KEY=VALUE [--hard=RESOURCE=QUANTITY]...", aliases: []string{"clusterquota"},
		Short: "Create a cluster resource quota",
		Long:  "Create a quota for several projects, selected by a label, or by an annotation such as the requester.",
		Example: `  # Limit all projects of the requester user-bob to 10 pods in total
  oc create clusterresourcequota limit-bob --project-annotation-selector=openshift.io/requester=user-bob --hard=pods=10`,
		Args: cobra.ExactArgs(1), Resource: quotav1.GroupVersion.WithResource("clusterresourcequotas"), Kind: "ClusterResourceQuota",
		flags: func(command *cobra.Command) {
			command.Flags().String("project-annotation-selector", "", "Annotations of the projects, as KEY=VALUE. Commas separate several; quote one that contains a comma.")
			command.Flags().StringToString("project-label-selector", nil, "Labels of the projects, as KEY=VALUE.")
			command.Flags().StringSlice("hard", nil, "Limit of a resource, as RESOURCE=QUANTITY. Can be repeated.")
		},
		Object: func(command *cobra.Command, args []string) (map[string]any, error) {
			text, _ := command.Flags().GetString("project-annotation-selector")
			annotations, err := annotationSelector(text)
			if err != nil {
				return nil, err
			}
			labels, _ := command.Flags().GetStringToString("project-label-selector")
			limits, _ := command.Flags().GetStringSlice("hard")
			selector := map[string]any{}
			if len(labels) > 0 {
				selector["labels"] = map[string]any{"matchLabels": anyMap(labels)}
			}
			if len(annotations) > 0 {
				selector["annotations"] = anyMap(annotations)
			}
			if len(selector) == 0 {
				return nil, errors.New("select the projects with --project-annotation-selector or --project-label-selector")
			}
			hard := map[string]any{}
			for _, limit := range limits {
				name, quantity, _ := strings.Cut(limit, "=")
				if _, err := resource.ParseQuantity(quantity); err != nil || name == "" {
					return nil, fmt.Errorf("parse --hard %q: must be RESOURCE=QUANTITY, such as pods=10", limit)
				}
				hard[name] = quantity
			}
			return map[string]any{
				"metadata": map[string]any{"name": args[0]}, "spec": map[string]any{"selector": selector, "quota": map[string]any{"hard": hard}},
			}, nil
		},
	}.Command(factory, streams)
}

// annotationSelector parses KEY=VALUE pairs separated by commas. As in CSV, a quoted value can
// contain commas.
func annotationSelector(text string) (map[string]string, error) {
	if text == "" {
		return nil, nil
	}
	pairs, err := csv.NewReader(strings.NewReader(text)).Read()
	if err != nil {
		return nil, fmt.Errorf("parse --project-annotation-selector: %w", err)
	}
	annotations := map[string]string{}
	for _, pair := range pairs {
		key, value, ok := strings.Cut(pair, "=")
		if !ok || key == "" {
			return nil, fmt.Errorf("Malformed annotation selector, expected %q: key=value", pair)
		}
		annotations[key] = value
	}
	return annotations, nil
}

func anyMap(m map[string]string) map[string]any {
	values := map[string]any{}
	for key, value := range m {
		values[key] = value
	}
	return values
}

// NewStream returns the `oc create imagestream` command.
func NewStream(factory util.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	return Creation{
		Use: "imagestream NAME", aliases: []string{"is"}, Short: "Create a new empty image stream",
		Long:    "Create an image stream without tags. Builds, pushes and imports add tags.",
		Example: "  oc create imagestream mysql",
		Args:    cobra.ExactArgs(1), Resource: imagev1.GroupVersion.WithResource("imagestreams"), Kind: "ImageStream", namespaced: true,
		flags: func(command *cobra.Command) {
			command.Flags().Bool("lookup-local", false, "Allow pods of the project to use the stream's tags as their images.")
		},
		Object: func(command *cobra.Command, args []string) (map[string]any, error) {
			object := map[string]any{"metadata": map[string]any{"name": args[0]}}
			if local, _ := command.Flags().GetBool("lookup-local"); local {
				object["spec"] = map[string]any{"lookupPolicy": map[string]any{"local": true}}
			}
			return object, nil
		},
	}.Command(factory, streams)
}

// NewStreamTag returns the `oc create imagestreamtag` command.
func NewStreamTag(factory util.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	return Creation{
		Use: "imagestreamtag NAME:TAG [--from=[PROJECT/]NAME:TAG | --from-image=IMAGE]", aliases: []string{"istag"},
		Short: "Create a new image stream tag",
		Long:  "Create a tag of an image stream, from another tag or from an image in a registry. If the image stream does not exist, the command creates it.",
		Example: `  # Create a tag from another tag
  oc create imagestreamtag mysql:latest --from=mysql:5.7

  # Create a tag that tracks an image in a registry
  oc create imagestreamtag mysql:5.7 --from-image=mysql:5.7 --scheduled`,
		Args: cobra.ExactArgs(1), Resource: imagev1.GroupVersion.WithResource("imagestreamtags"), Kind: "ImageStreamTag", namespaced: true,
		flags: func(command *cobra.Command) {
			flags := command.Flags()
			flags.String("from", "", "Tag or image of a stream, as NAME:TAG or NAME@ID in this project, or as PROJECT/NAME:TAG.")
			flags.String("from-image", "", "Image in a registry.")
			flags.Bool("reference", false, "Reference the image without importing it.")
			flags.Bool("insecure", false, "Allow connections to the registry without TLS.")
			flags.Bool("scheduled", false, "Import the image again periodically.")
			flags.String("reference-policy", "source", "Registry from which pods pull the image: source (its own) or local (the cluster's).")
			flags.StringArrayP("annotation", "A", nil, "Annotation of the tag, as KEY=VALUE.")
		},
		Object: func(command *cobra.Command, args []string) (map[string]any, error) {
			return streamTagOf(command, args[0])
		},
	}.Command(factory, streams)
}

// streamTagOf returns the image stream tag that the flags specify. name is STREAM:TAG.
func streamTagOf(command *cobra.Command, name string) (map[string]any, error) {
	if stream, tag, ok := strings.Cut(name, ":"); !ok || stream == "" || tag == "" {
		return nil, fmt.Errorf("image stream tag %q must be of the form <stream_name>:<tag>", name)
	}
	text := func(flag string) string { value, _ := command.Flags().GetString(flag); return value }
	is := func(flag string) bool { value, _ := command.Flags().GetBool(flag); return value }
	from := map[string]any{}
	switch {
	case text("from") != "" && text("from-image") != "":
		return nil, errors.New("--from and --from-image may not be used together")
	case text("from") == "" && text("from-image") == "":
		from = nil // A push or an import sets the tag's image later.
	case text("from-image") != "":
		from["kind"], from["name"] = "DockerImage", text("from-image")
	default:
		from["kind"], from["name"] = "ImageStreamTag", strings.TrimPrefix(text("from"), ":")
		if project, rest, ok := strings.Cut(text("from"), "/"); ok {
			from["namespace"], from["name"] = project, rest
		}
		if strings.Contains(text("from"), "@") {
			from["kind"] = "ImageStreamImage"
		}
	}
	policy, ok := map[string]string{"source": "Source", "local": "Local"}[strings.ToLower(text("reference-policy"))]
	if !ok {
		return nil, fmt.Errorf("--reference-policy is %q, must be source or local", text("reference-policy"))
	}
	tag := map[string]any{
		"reference": is("reference"), "referencePolicy": map[string]any{"type": policy},
		"importPolicy": map[string]any{"insecure": is("insecure"), "scheduled": is("scheduled")},
	}
	if from != nil {
		tag["from"] = from
	}
	pairs, err := command.Flags().GetStringArray("annotation")
	if err != nil {
		return nil, err
	}
	annotations := map[string]string{}
	for _, pair := range pairs {
		key, value, ok := strings.Cut(pair, "=")
		if !ok || key == "" {
			return nil, fmt.Errorf("annotations must be of the form key=value, but is %q", pair)
		}
		annotations[key] = value
	}
	if len(annotations) > 0 {
		tag["annotations"] = anyMap(annotations)
	}
	return map[string]any{"metadata": map[string]any{"name": name}, "tag": tag}, nil
}

// NewConfig returns the `oc create deploymentconfig` command.
func NewConfig(factory util.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	return Creation{
		Use: "deploymentconfig NAME --image=IMAGE -- [COMMAND] [args...]", aliases: []string{"dc"},
		Short:   "Create a deployment config that uses a given image",
		Long:    "Create a deployment configuration with one container. A change of its template starts a deployment.",
		Example: "  oc create deploymentconfig my-nginx --image=nginx",
		Args:    cobra.MinimumNArgs(1), Resource: appsv1.GroupVersion.WithResource("deploymentconfigs"), Kind: "DeploymentConfig", namespaced: true,
		flags: func(command *cobra.Command) { command.Flags().String("image", "", "Image of the container.") },
		Object: func(command *cobra.Command, args []string) (map[string]any, error) {
			image, _ := command.Flags().GetString("image")
			if image == "" {
				return nil, errors.New("specify the container's image with --image")
			}
			labels := map[string]any{"deployment-config.name": args[0]}
			container := map[string]any{"name": "default-container", "image": image}
			if len(args) > 1 {
				var words []any
				for _, word := range args[1:] {
					words = append(words, word)
				}
				container["args"] = words
			}
			return map[string]any{
				"metadata": map[string]any{"name": args[0]},
				"spec": map[string]any{
					"replicas": int64(1), "selector": labels,
					"template": map[string]any{"metadata": map[string]any{"labels": labels}, "spec": map[string]any{"containers": []any{container}}},
				},
			}, nil
		},
	}.Command(factory, streams)
}
