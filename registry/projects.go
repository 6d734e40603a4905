package registry

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/distribution/distribution/v3/registry/storage/driver"
	"github.com/opencontainers/go-digest"
	imagev1 "github.com/openshift/api/image/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/slipway-platform/slipway/apigroup/image/record"
	"github.com/slipway-platform/slipway/registry/registryname"
)

// When a project is deleted, its content in the registry is removed. A file for each project
// records the UID of the project's namespace. As a result, a new project never receives the content
// of a deleted project with the same name.

// projectsDir contains one file for each project, named after the project. The file contains the
// UID of the project's namespace.
const projectsDir = rootDir + "/projects"

// owners caches the UIDs of the namespaces that own the content of projects.
type owners struct {
	// changing is locked while projects' content is removed or assigned to a namespace.
	changing sync.Mutex
	mu       sync.Mutex
	uids     map[string]types.UID
}

func (o *owners) get(project string) types.UID {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.uids[project]
}

// set records the UID of a project's namespace. An empty UID removes the record.
func (o *owners) set(project string, uid types.UID) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.uids == nil {
		o.uids = map[string]types.UID{}
	}
	o.uids[project] = uid
}

// claimProject ensures that the content in a project's repositories belongs to the current project
// with that name. It removes a deleted project's content.
func (s *server) claimProject(ctx context.Context, store *store, project string) error {
	if s.namespaces == nil {
		return nil
	}
	uid, err := s.namespaces.uid(ctx, project)
	// If the namespace does not exist, claim nothing, because only cluster administrators have
	// permissions in it.
	if err != nil || uid == "" || s.owners.get(project) == uid {
		return err
	}
	s.owners.changing.Lock()
	defer s.owners.changing.Unlock()
	file := path.Join(projectsDir, project)
	owner, err := store.driver.GetContent(ctx, file)
	if err != nil && !missing(err) {
		return fmt.Errorf("read owner of project %q: %w", project, err)
	}
	if err == nil && types.UID(owner) != uid {
		if store.readOnly {
			return fmt.Errorf("the read-only registry contains content of a deleted project named %q", project)
		}
		if err := s.removeProjects(ctx, store, []string{project}); err != nil {
			return fmt.Errorf("remove content of deleted project %q: %w", project, err)
		}
	}
	if !store.readOnly && types.UID(owner) != uid {
		if err := store.driver.PutContent(ctx, file, []byte(uid)); err != nil {
			return fmt.Errorf("record owner of project %q: %w", project, err)
		}
	}
	s.owners.set(project, uid)
	return nil
}

// removeDeleted removes the content of deleted projects. If a project is created at the same time,
// requests to the project wait in claimProject.
func (s *server) removeDeleted(ctx context.Context, store *store) error {
	if !s.namespaces.synced() || store.readOnly {
		return nil
	}
	s.owners.changing.Lock()
	defer s.owners.changing.Unlock()
	projects := map[string]bool{}
	for _, parent := range []string{repositoriesDir, projectsDir} {
		entries, err := store.driver.List(ctx, parent)
		if err != nil && !missing(err) {
			return fmt.Errorf("list registry projects: %w", err)
		}
		for _, entry := range entries {
			projects[path.Base(entry)] = true
		}
	}
	var deleted []string
	for project := range projects {
		uid, err := s.namespaces.uid(ctx, project)
		if err != nil {
			return err
		}
		if uid == "" {
			deleted = append(deleted, project)
		}
	}
	if len(deleted) == 0 {
		return nil
	}
	return s.removeProjects(ctx, store, deleted)
}

// removeProjects removes projects' repositories, uploads and blobs, and the Image objects of images
// that no other project uses. If another project's image stream uses an image, the image is first
// moved to that stream's repository. Directories are removed last, so that an interrupted removal
// can continue. The caller must hold s.owners.changing.
func (s *server) removeProjects(ctx context.Context, store *store, projects []string) error {
	s.pushes.Lock()
	defer s.pushes.Unlock()
	streams, err := s.images.ImageStreams("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	search := collection{
		store: store, images: map[string][]string{}, streams: map[string][]string{}, now: time.Now(), skip: map[string]bool{},
		promises: &s.promises,
	}
	for _, project := range projects {
		search.skip[project] = true
	}
	s.promises.forget(func(repository string, _ time.Time) bool {
		project, _, _ := strings.Cut(repository, "/")
		return search.skip[project]
	})
	inUse := map[string]bool{}
	for _, stream := range streams.Items {
		if search.skip[stream.Namespace] {
			continue
		}
		for _, tag := range stream.Status.Tags {
			for _, event := range tag.Items {
				inUse[event.Image] = true
				name := stream.Namespace + "/" + stream.Name
				if err := s.adopt(ctx, store, name, event, search.skip); err != nil {
					return err
				}
				search.streams[name] = append(search.streams[name], event.Image)
			}
		}
	}
	if err := s.removeImages(ctx, search, inUse); err != nil {
		return err
	}
	blobs, err := store.linked(ctx, projects)
	if err != nil {
		return err
	}
	if len(blobs) > 0 {
		search.request = record.GarbageRequest{Images: []record.GarbageImage{{Blobs: blobs}}}
		if _, err := search.run(ctx); err != nil {
			return err
		}
	}
	for _, project := range projects {
		for _, dir := range []string{repositoriesDir, projectsDir} {
			if err := store.driver.Delete(ctx, path.Join(dir, project)); err != nil && !missing(err) {
				return fmt.Errorf("remove %q of project %q: %w", dir, project, err)
			}
		}
		s.owners.set(project, "")
		s.blobs.forget(project)
		if s.guard != nil {
			s.guard.usage.forget(project)
		}
	}
	return nil
}

// repositoryOf returns the repository in an image reference, or "" if the reference is to another
// registry.
func (s *server) repositoryOf(reference string) string {
	parsed, err := record.ParseReference(reference)
	if err != nil || parsed.Registry != registryname.Address && !slices.Contains(s.Hosts, parsed.Registry) {
		return ""
	}
	return parsed.Repository
}

// adopt moves an image from a project that is being removed to the repository of the stream that
// uses the image.
func (s *server) adopt(ctx context.Context, store *store, to string, event imagev1.TagEvent,
	projects map[string]bool) error {
	from := s.repositoryOf(event.DockerImageReference)
	project, _, _ := strings.Cut(from, "/")
	id := digest.Digest(event.Image)
	if !projects[project] || id.Validate() != nil {
		return nil
	}
	if err := store.link(ctx, from, to, id); err != nil {
		return fmt.Errorf("move image %q from repository %q to %q: %w", id, from, to, err)
	}
	return nil
}

// removeImages deletes the Image objects of projects that are being removed, except the Image
// objects that another stream uses. It adds the blobs of the remaining images to search.images.
func (s *server) removeImages(ctx context.Context, search collection, inUse map[string]bool) error {
	images, err := s.images.Images().List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for i := range images.Items {
		image := &images.Items[i]
		project, _, _ := strings.Cut(s.repositoryOf(image.DockerImageReference), "/")
		if inUse[image.Name] || image.Annotations[record.Managed] != "true" || !search.skip[project] {
			search.images[image.Name] = record.Blobs(image)
			continue
		}
		err := s.images.Images().Delete(ctx, image.Name, metav1.DeleteOptions{
			Preconditions: &metav1.Preconditions{UID: ptr.To(image.UID), ResourceVersion: ptr.To(image.ResourceVersion)},
		})
		if apierrors.IsConflict(err) { // the image was pushed to another repository in the meantime
			search.images[image.Name] = record.Blobs(image)
			continue
		}
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("remove image %q: %w", image.Name, err)
		}
	}
	return nil
}

// linked returns the content digests of the blobs that the projects' repositories link to.
func (s *store) linked(ctx context.Context, projects []string) (blobs []string, err error) {
	for _, project := range projects {
		err := s.driver.Walk(ctx, path.Join(repositoriesDir, project), func(file driver.FileInfo) error {
			at := file.Path()
			if file.IsDir() || path.Base(at) != linkFile || !strings.Contains(at, "/"+layersDir+"/") && !strings.Contains(at, "/"+revisionsDir+"/") {
				return nil
			}
			if id := s.target(ctx, at); id.Validate() == nil {
				blobs = append(blobs, id.String())
			}
			return nil
		})
		if err != nil && !missing(err) {
			return nil, fmt.Errorf("list blobs of project %q: %w", project, err)
		}
	}
	return blobs, nil
}

// link adds a manifest, the blobs and manifests that it refers to, and its referrers to another
// repository. It skips content that is missing.
func (s *store) link(ctx context.Context, from, to string, id digest.Digest) error {
	if s.hasManifest(ctx, to, id) || !s.hasManifest(ctx, from, id) {
		return nil
	}
	repository, err := s.repository(ctx, from)
	if err != nil {
		return err
	}
	manifests, err := repository.Manifests(ctx)
	if err != nil {
		return err
	}
	manifest, err := manifests.Get(ctx, id)
	if err != nil {
		return err
	}
	link := func(kind string, blob digest.Digest) error {
		content := s.target(ctx, path.Join(linkDir(from, kind, blob), linkFile))
		if content == "" {
			return nil
		}
		return s.driver.PutContent(ctx, path.Join(linkDir(to, kind, blob), linkFile), []byte(content))
	}
	for _, reference := range manifest.References() {
		if err := s.link(ctx, from, to, reference.Digest); err != nil {
			return err
		}
		if err := link(layersDir, reference.Digest); err != nil {
			return err
		}
	}
	if err := link(revisionsDir, id); err != nil {
		return err
	}
	bySubject, err := s.referrers(ctx, from)
	if err != nil {
		return err
	}
	for _, referrer := range bySubject[id] {
		if err := s.noteReferrer(ctx, to, id, referrer); err != nil {
			return err
		}
		if err := s.link(ctx, from, to, referrer); err != nil {
			return err
		}
	}
	return nil
}
