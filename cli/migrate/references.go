package migrate

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/dynamic"
	"k8s.io/kubectl/pkg/cmd/util"
)

// newReferences returns the `oc adm migrate image-references` command.
func newReferences(factory util.Factory, streams genericiooptions.IOStreams) *cobra.Command {
	w := newWalk("imagestreams", "images", "secrets")
	command := &cobra.Command{
		Use: "image-references REGISTRY/NAME=REGISTRY/NAME...", Short: "Update embedded image references",
		Long: `Replace the registry or the name in references to images.

The command changes image streams, images and secrets with credentials of registries, or the resources of --include: build configs, pods, and objects with a pod template (deployments,
deployment configs, replication controllers, daemon sets, jobs, ...).

A * on the left matches any registry or name. A * on the right keeps the original. Tags and digests stay. A name without a registry refers to Docker Hub. The
first mapping that matches wins. Without --confirm, the command lists the changes.`,
		Example: `  # List the changes for a renamed registry
  oc adm migrate image-references 'old.example.com/*=new.example.com/*'

  # Make the changes in one project
  oc adm migrate image-references 'old.example.com/*=new.example.com/*' --include=imagestreams -n shop --confirm

  # Change the deployments and build configs of all projects
  oc adm migrate image-references 'old.example.com/*=new.example.com/*' --include=deployments,deploymentconfigs,buildconfigs --confirm`,
		Run: func(command *cobra.Command, args []string) {
			all, err := parseMappings(args)
			util.CheckErr(err)
			util.CheckErr(w.run(command.Context(), factory, streams.Out, migration{change: references{all}.change, save: references{all}.save}))
		},
	}
	w.addFlags(command)
	return command
}

func parseMappings(args []string) (all mappings, err error) {
	if len(args) == 0 {
		return nil, errors.New("at least one mapping argument must be specified: REGISTRY/NAME=REGISTRY/NAME")
	}
	for _, arg := range args {
		mapping, err := parseMapping(arg)
		if err != nil {
			return nil, err
		}
		all = append(all, mapping)
	}
	return all, nil
}

// references replaces the images that objects refer to.
type references struct{ mappings }

// save updates an object. For an image stream, it updates the status before the spec, because a
// changed spec starts imports. If it updated the status later, the old status would overwrite the
// results of the imports.
func (r references) save(ctx context.Context, objects dynamic.ResourceInterface, object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if object.GetKind() == "ImageStream" {
		result, err := objects.UpdateStatus(ctx, object, metav1.UpdateOptions{})
		if err != nil {
			return nil, err
		}
		if changed, err := r.change(result); err != nil || !changed {
			return result, err
		}
		object = result
	}
	return objects.Update(ctx, object, metav1.UpdateOptions{})
}

// change replaces the references in an object and reports whether it changed the object.
func (r references) change(object *unstructured.Unstructured) (bool, error) {
	switch object.GetKind() {
	case "Image":
		return r.field(object.Object, "dockerImageReference"), nil
	case "ImageStream":
		return r.stream(object.Object), nil
	case "Secret":
		return r.secret(object)
	case "BuildConfig":
		return r.build(object.Object), nil
	case "Pod":
		return r.pod(object.Object, "spec"), nil
	case "CronJob":
		return r.pod(object.Object, "spec", "jobTemplate", "spec", "template", "spec"), nil
	case "PodTemplate":
		return r.pod(object.Object, "template", "spec"), nil
	}
	if _, match, _ := unstructured.NestedFieldNoCopy(object.Object, "spec", "template", "spec", "containers"); !match {
		return false, errIgnored
	}
	return r.pod(object.Object, "spec", "template", "spec"), nil
}

// field replaces the reference in a field, and reports whether the reference changed.
func (r references) field(in map[string]any, path ...string) bool {
	before, _, _ := unstructured.NestedString(in, path...)
	after := r.image(before)
	if before == "" || after == before {
		return false
	}
	return unstructured.SetNestedField(in, after, path...) == nil
}

// from replaces the image in an object reference if the reference is to an image in a registry.
func (r references) from(in map[string]any, path ...string) bool {
	existing, _, _ := unstructured.NestedFieldNoCopy(in, path...)
	reference, ok := existing.(map[string]any)
	return ok && reference["kind"] == "DockerImage" && r.field(reference, "name")
}

// items returns the elements of a list that are maps. The caller can modify them in place.
func items(in map[string]any, path ...string) (all []map[string]any) {
	existing, _, _ := unstructured.NestedFieldNoCopy(in, path...)
	list, _ := existing.([]any)
	for _, item := range list {
		if object, ok := item.(map[string]any); ok {
			all = append(all, object)
		}
	}
	return all
}

func (r references) stream(stream map[string]any) bool {
	changed := r.field(stream, "spec", "dockerImageRepository")
	for _, tag := range items(stream, "spec", "tags") {
		changed = r.from(tag, "from") || changed
	}
	for _, tag := range items(stream, "status", "tags") {
		for _, event := range items(tag, "items") {
			changed = r.field(event, "dockerImageReference") || changed
		}
	}
	return changed
}

func (r references) build(config map[string]any) bool {
	changed := r.from(config, "spec", "output", "to")
	for _, strategy := range []string{"dockerStrategy", "sourceStrategy", "customStrategy"} {
		changed = r.from(config, "spec", "strategy", strategy, "from") || changed
	}
	for _, source := range items(config, "spec", "source", "images") {
		changed = r.from(source, "from") || changed
	}
	return changed
}

func (r references) pod(object map[string]any, spec ...string) (changed bool) {
	for _, list := range []string{"initContainers", "containers"} {
		for _, container := range items(object, append(spec, list)...) {
			changed = r.field(container, "image") || changed
		}
	}
	return changed
}

// secret replaces the registries in a secret that contains credentials for Docker clients.
func (r references) secret(secret *unstructured.Unstructured) (bool, error) {
	kind, _, _ := unstructured.NestedString(secret.Object, "type")
	switch corev1.SecretType(kind) {
	case corev1.SecretTypeDockercfg:
		return r.credentials(secret, corev1.DockerConfigKey, func(all map[string]any) map[string]any { return all })
	case corev1.SecretTypeDockerConfigJson:
		return r.credentials(secret, corev1.DockerConfigJsonKey, func(all map[string]any) map[string]any {
			accounts, _ := all["auths"].(map[string]any)
			return accounts
		})
	}
	return false, nil
}

// credentials replaces the registries in a key of a secret. within returns the accounts in the
// key's content. The error never contains the content, because it is secret.
func (r references) credentials(secret *unstructured.Unstructured, key string, within func(map[string]any) map[string]any) (changed bool, err error) {
	text, _, _ := unstructured.NestedString(secret.Object, "data", key)
	data, err := base64.StdEncoding.DecodeString(text)
	var all map[string]any
	if err != nil || json.Unmarshal(data, &all) != nil {
		return false, fmt.Errorf("read %s: no credentials in the format of Docker clients", key)
	}
	accounts := within(all)
	next := map[string]any{}
	for _, place := range slices.Sorted(maps.Keys(accounts)) {
		to := r.account(place)
		_, exists := accounts[to] // also true if the account's key does not change
		if _, taken := next[to]; exists || taken {
			to = place // keep both credentials
		}
		changed = changed || to != place
		next[to] = accounts[place]
	}
	if !changed {
		return false, nil
	}
	clear(accounts)
	maps.Copy(accounts, next)
	if data, err = json.Marshal(all); err != nil {
		return false, err
	}
	return true, unstructured.SetNestedField(secret.Object, base64.StdEncoding.EncodeToString(data), "data", key)
}
