// Package projectowner finds a user's projects. It is used by limits that apply to all of a user's
// projects together.
package projectowner

import (
	"fmt"

	projectv1 "github.com/openshift/api/project/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
)

// index is the name of the index that maps owners to namespaces.
const index = "project-owner"

// Index adds an index by owner to a namespace informer, unless the informer already has one.
func Index(namespaces cache.SharedIndexInformer) error {
	if namespaces.GetIndexer().GetIndexers()[index] != nil {
		return nil
	}
	err := namespaces.AddIndexers(cache.Indexers{index: func(object any) ([]string, error) { return []string{ownerOf(object)}, nil }})
	if err != nil {
		return fmt.Errorf("index projects by owner: %w", err)
	}
	return nil
}

// Projects returns the names of all projects of a project's owner, including the project itself.
// The indexer must have the index. If the project is newer than the cache, Projects returns only
// the project.
func Projects(namespaces cache.Indexer, project string) (names []string) {
	object, exists, err := namespaces.GetByKey(project)
	if err != nil || !exists {
		return []string{project}
	}
	owned, err := namespaces.ByIndex(index, ownerOf(object))
	if err != nil || len(owned) == 0 {
		return []string{project}
	}
	for _, other := range owned {
		if meta, ok := other.(metav1.Object); ok {
			names = append(names, meta.GetName())
		}
	}
	return names
}

// Of returns the owner of a project in a form that differs between users and projects. If the
// project is newer than the cache, it is its own owner.
func Of(namespaces cache.Indexer, project string) string {
	object, exists, err := namespaces.GetByKey(project)
	if err != nil || !exists {
		return "project " + project
	}
	return ownerOf(object)
}

// ownerOf returns the user who requested a project. A project without a requester is its own owner.
func ownerOf(object any) string {
	namespace, ok := object.(*corev1.Namespace)
	if !ok {
		return ""
	}
	if requester := namespace.Annotations[projectv1.ProjectRequesterAnnotation]; requester != "" {
		return "user " + requester
	}
	return "project " + namespace.Name
}
