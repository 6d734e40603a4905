package registry

import (
	"slices"
	"testing"

	"github.com/opencontainers/go-digest"
	imagev1 "github.com/openshift/api/image/v1"
	imagefake "github.com/openshift/client-go/image/clientset/versioned/fake"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"

	"github.com/slipway-platform/slipway/apigroup/image/record"
	"github.com/slipway-platform/slipway/registry/registryname"
)

// inCluster returns a registry in a cluster. uids maps the cluster's namespaces to their UIDs;
// objects contains its streams and images.
func inCluster(t *testing.T, uids map[string]types.UID, objects ...runtime.Object) *server {
	t.Helper()
	n := &namespaces{
		client: fake.NewClientset().CoreV1().Namespaces(), store: cache.NewStore(cache.MetaNamespaceKeyFunc),
		synced: func() bool { return true }, deleted: make(chan struct{}, 1),
	}
	for name, uid := range uids {
		if err := n.store.Add(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, UID: uid}}); err != nil {
			t.Fatal(err)
		}
	}
	client := imagefake.NewClientset(objects...)
	return &server{
		Registry: &Registry{}, namespaces: n, uploads: newUploads(), blobs: newSources(), images: client.ImageV1(),
		guard: &guard{usage: newUsage(), quota: func(string) int64 { return Unlimited }},
	}
}

// managed returns the Image object for an image that is stored in a repository.
func managed(repository, digest string) *imagev1.Image {
	return &imagev1.Image{
		ObjectMeta:           metav1.ObjectMeta{Name: digest, Annotations: map[string]string{record.Managed: "true"}},
		DockerImageReference: registryname.Address + "/" + repository + "@" + digest,
	}
}

// blobs returns the digests of all blobs on the disk.
func (g *testRegistry) blobs() (all []string) {
	g.t.Helper()
	err := g.content.Blobs().Enumerate(g.t.Context(), func(id digest.Digest) error {
		all = append(all, id.String())
		return nil
	})
	if err != nil && !missing(err) {
		g.t.Fatal(err)
	}
	return all
}

func TestContentOfDeletedProjectIsRemoved(t *testing.T) {
	g := newTestRegistry(t)
	shared, layer := g.layer(), g.layer()
	deleted, promoted, staying := g.push("old/app", shared, layer), g.push("old/app", g.layer()), g.push("shop/app", shared)
	bill := g.attach("old/app", promoted, billType)
	stream := &imagev1.ImageStream{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "live"}}
	stream.Status.Tags = []imagev1.NamedTagEventList{{Tag: "v1", Items: []imagev1.TagEvent{{Image: promoted, DockerImageReference: registryname.Address + "/old/app@" + promoted}}}}
	s := inCluster(t, map[string]types.UID{"shop": "1"}, stream, managed("old/app", deleted), managed("old/app", promoted), managed("shop/app", staying))
	if err := s.removeDeleted(t.Context(), g.store); err != nil {
		t.Fatal(err)
	}
	if dirs, err := g.driver.List(t.Context(), repositoriesDir); err != nil || len(dirs) != 1 {
		t.Errorf("the projects are %q, %v", dirs, err)
	}
	if _, err := s.images.Images().Get(t.Context(), deleted, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the record of an image that is in no repository: %v", err)
	}
	for _, name := range []string{promoted, staying} {
		if _, err := s.images.Images().Get(t.Context(), name, metav1.GetOptions{}); err != nil {
			t.Error(err)
		}
	}
	remaining := g.blobs()
	if slices.Contains(remaining, deleted) || slices.Contains(remaining, digestOf(t, layer)) {
		t.Error("blobs of the project are still on the disk")
	}
	if !slices.Contains(remaining, digestOf(t, shared)) {
		t.Error("a layer of another project was removed")
	}
	// Another project's stream keeps its image, including the image's referrers.
	for _, id := range []string{promoted, bill} {
		if !g.hasManifest(t.Context(), "shop/live", digest.Digest(id)) {
			t.Errorf("manifest %s was not moved to the repository of the stream that uses it", id)
		}
	}
	_, content, err := g.manifest(t.Context(), "shop/live", digest.Digest(promoted))
	if err != nil {
		t.Fatal(err)
	}
	config, err := record.ConfigDigest(content)
	if err != nil || !g.hasBlob(t.Context(), "shop/live", digest.Digest(config)) {
		t.Errorf("its configuration %s is missing, %v", config, err)
	}
	if err := s.removeDeleted(t.Context(), g.store); err != nil {
		t.Errorf("a second removal: %v", err)
	}
}

func TestRecreatedProjectGetsNoOldContent(t *testing.T) {
	g := newTestRegistry(t)
	s := inCluster(t, map[string]types.UID{"shop": "1"})
	if err := s.claimProject(t.Context(), g.store, "shop"); err != nil {
		t.Fatal(err)
	}
	former := g.push("shop/app", g.layer())
	if err := s.claimProject(t.Context(), g.store, "shop"); err != nil || !g.hasManifest(t.Context(), "shop/app", digest.Digest(former)) {
		t.Fatalf("the project lost its image, %v", err)
	}
	for name, next := range map[string]*server{
		"while the registry runs": s, "while the registry is stopped": inCluster(t, nil),
	} {
		g.push("shop/app", g.layer())
		if err := g.driver.PutContent(t.Context(), projectsDir+"/shop", []byte("1")); err != nil {
			t.Fatal(err)
		}
		if err := next.namespaces.store.Add(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop", UID: "2"}}); err != nil {
			t.Fatal(err)
		}
		if err := next.claimProject(t.Context(), g.store, "shop"); err != nil {
			t.Fatal(err)
		}
		if remaining := g.blobs(); len(remaining) > 0 {
			t.Errorf("%s: the former project still has %q", name, remaining)
		}
		if owner, err := g.driver.GetContent(t.Context(), projectsDir+"/shop"); err != nil || string(owner) != "2" {
			t.Errorf("%s: the owner is %q, %v", name, owner, err)
		}
		next.owners.set("shop", "1")
	}
	if _, err := g.driver.Stat(t.Context(), repositoriesDir+"/shop"); !missing(err) {
		t.Errorf("the repositories of the former project: %v", err)
	}
}
