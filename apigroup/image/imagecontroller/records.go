package imagecontroller

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	imagev1 "github.com/openshift/api/image/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	"github.com/slipway-platform/slipway/apigroup/image/record"
	"github.com/slipway-platform/slipway/controller"
)

// records handles the image records that deleted projects created. It reassigns a record to a
// project that uses the image, so that the record counts toward that project's limit. If no image
// stream uses the image, it deletes the record. It keeps the record of an image in the cluster's
// registry, because that registry deletes the records of its own images.
type records struct {
	streams, images, namespaces cache.SharedIndexInformer
	kube                        kubernetes.Interface
	metadata                    metadata.Interface
}

// byProject is the name of the index that maps projects to the records that they created.
const byProject = "project"

func newRecords(deps *controller.Deps) (*records, error) {
	r := &records{
		streams:    deps.ImageInformers.Image().V1().ImageStreams().Informer(),
		images:     deps.MetadataInformers.ForResource(imagev1.GroupVersion.WithResource("images")).Informer(),
		namespaces: deps.Informers.Core().V1().Namespaces().Informer(),
		kube:       deps.Kube, metadata: deps.Metadata,
	}
	if r.images.GetIndexer().GetIndexers()[byProject] != nil { // an earlier Run has added the index
		return r, nil
	}
	err := r.images.AddIndexers(cache.Indexers{byProject: func(object any) ([]string, error) {
		return []string{object.(*metav1.PartialObjectMetadata).Labels[record.ProjectLabel]}, nil
	}})
	if err != nil {
		return nil, fmt.Errorf("index images: %w", err)
	}
	return r, nil
}

func (r *records) controller() controller.Controller {
	return controller.Controller{
		Name: "image-records",
		Watches: []controller.Watch{
			{Informer: r.namespaces},
			{Informer: r.images, Keys: func(object any) []controller.Key {
				head, ok := object.(*metav1.PartialObjectMetadata)
				if !ok || head.Labels[record.ProjectLabel] == "" {
					return nil
				}
				return []controller.Key{{Name: head.Labels[record.ProjectLabel]}}
			}},
		},
		Reads:     []cache.SharedIndexInformer{r.streams},
		Workers:   1,
		Reconcile: func(ctx context.Context, key controller.Key) error { return r.reconcile(ctx, key.Name) },
	}
}

// reconcile handles a project's records if the project has been deleted.
func (r *records) reconcile(ctx context.Context, project string) error {
	if _, exists, err := r.namespaces.GetIndexer().GetByKey(project); err != nil || exists {
		return err
	}
	created, err := r.images.GetIndexer().ByIndex(byProject, project)
	if err != nil || len(created) == 0 {
		return err
	}
	// The cache might not contain a new project yet.
	_, err = r.kube.CoreV1().Namespaces().Get(ctx, project, metav1.GetOptions{})
	if !apierrors.IsNotFound(err) {
		return err
	}
	// The API server limits the rate, in bytes, at which this controller can rewrite records. It
	// does not limit deletions, so deletions come first. If a request fails, the next attempt
	// handles the remaining records.
	users := r.users(project)
	slices.SortStableFunc(created, func(a, b any) int { return strings.Compare(users[nameOf(a)], users[nameOf(b)]) })
	for _, object := range created {
		head := object.(*metav1.PartialObjectMetadata)
		if err := r.reassign(ctx, head, users[head.Name]); err != nil {
			return err
		}
	}
	return nil
}

func nameOf(head any) string { return head.(*metav1.PartialObjectMetadata).Name }

// users maps each image that is in use by a stream outside the deleted project to one of the
// projects that use the image.
func (r *records) users(deleted string) map[string]string {
	users := map[string]string{}
	for _, object := range r.streams.GetStore().List() {
		stream := object.(*imagev1.ImageStream)
		if stream.Namespace == deleted {
			continue
		}
		for _, tag := range stream.Status.Tags {
			for _, event := range tag.Items {
				users[event.Image] = stream.Namespace
			}
		}
	}
	return users
}

// reassign reassigns a record to a project. If project is empty, it deletes the record, unless the
// image is in the cluster's registry. It ignores a conflict, because the change that caused the
// conflict enqueues the record's project again.
func (r *records) reassign(ctx context.Context, head *metav1.PartialObjectMetadata, project string) error {
	images := r.metadata.Resource(imagev1.GroupVersion.WithResource("images"))
	var err error
	switch {
	case project != "":
		var patch []byte
		patch, err = json.Marshal(map[string]any{"metadata": map[string]any{
			"resourceVersion": head.ResourceVersion, "labels": map[string]string{record.ProjectLabel: project},
		}})
		if err == nil {
			_, err = images.Patch(ctx, head.Name, types.MergePatchType, patch, metav1.PatchOptions{})
		}
	case head.Annotations[record.Managed] == "true":
		return nil
	default:
		err = images.Delete(ctx, head.Name, metav1.DeleteOptions{
			Preconditions: &metav1.Preconditions{UID: ptr.To(head.UID), ResourceVersion: ptr.To(head.ResourceVersion)},
		})
	}
	if err == nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return fmt.Errorf("reconcile record of image %q: %w", head.Name, err)
}
