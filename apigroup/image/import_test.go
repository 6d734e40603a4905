package image

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/distribution/distribution/v3/configuration"
	"github.com/distribution/distribution/v3/registry/handlers"
	_ "github.com/distribution/distribution/v3/registry/storage/driver/filesystem"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	imagev1 "github.com/openshift/api/image/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/slipway-platform/slipway/internal/outbound"
	"github.com/slipway-platform/slipway/internal/registryclient"
)

// otherRegistry starts a registry that stores images in a directory, and returns its host.
func otherRegistry(t *testing.T) string {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	app := handlers.NewApp(ctx, &configuration.Configuration{Storage: configuration.Storage{"filesystem": {"rootdirectory": t.TempDir()}}})
	server := httptest.NewServer(app)
	t.Cleanup(func() {
		server.Close()
		cancel()
		if err := app.Shutdown(); err != nil {
			t.Error(err)
		}
	})
	return strings.TrimPrefix(server.URL, "http://")
}

func push(t *testing.T, reference string, artifact remote.Taggable) {
	t.Helper()
	tag, err := name.NewTag(reference)
	if err != nil {
		t.Fatal(err)
	}
	if index, ok := artifact.(v1.ImageIndex); ok {
		err = remote.WriteIndex(tag, index)
	} else {
		err = remote.Write(tag, artifact.(v1.Image))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// reading returns a fetcher without credentials, for tests that only read.
func reading(t *testing.T) fetcher {
	t.Helper()
	fetcher, err := newFetcher(registryclient.NewPool(outbound.New(outbound.Policy{AllowedNetworks: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}), 50), nil, nil, false)
	if err != nil {
		t.Fatal(err)
	}
	return fetcher
}

func TestImportSelectsImageForThisArchitecture(t *testing.T) {
	host := otherRegistry(t)
	var index v1.ImageIndex = empty.Index
	digests := map[string]string{}
	for _, architecture := range []string{"s390x", runtime.GOARCH} {
		image, err := random.Image(100, 1)
		if err != nil {
			t.Fatal(err)
		}
		digest, err := image.Digest()
		if err != nil {
			t.Fatal(err)
		}
		digests[architecture] = digest.String()
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: image, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: architecture}}})
	}
	push(t, host+"/team/app:v1", index)
	image, children, err := reading(t).image(t.Context(), host+"/team/app:v1", imagev1.TagImportPolicy{}, preferredPlatform(nil))
	if err != nil {
		t.Fatal(err)
	}
	if want := digests[runtime.GOARCH]; image.Name != want || image.DockerImageReference != host+"/team/app@"+want || len(children) != 0 {
		t.Errorf("image %q at %q with %d others, want %q", image.Name, image.DockerImageReference, len(children), want)
	}
	for preferred, want := range map[string]string{"s390x": "s390x", "riscv64": runtime.GOARCH} {
		annotated := &imagev1.TagReference{Annotations: map[string]string{preferOS: "linux", preferArchitecture: preferred}}
		image, _, err := reading(t).image(t.Context(), host+"/team/app:v1", imagev1.TagImportPolicy{}, preferredPlatform(annotated))
		if err != nil || image.Name != digests[want] {
			t.Errorf("with a preference for %s: %q, %v, want the image for %s", preferred, image.Name, err, want)
		}
	}
	image, children, err = reading(t).image(t.Context(), host+"/team/app:v1", imagev1.TagImportPolicy{ImportMode: imagev1.ImportModePreserveOriginal}, preferredPlatform(nil))
	if err != nil {
		t.Fatal(err)
	}
	if len(image.DockerImageManifests) != 2 || len(children) != 2 || children[0].Name != digests["s390x"] || len(children[0].DockerImageLayers) != 1 {
		t.Errorf("index of %d with %d images", len(image.DockerImageManifests), len(children))
	}
}

func TestImportRejectsIndexWithTooManyImages(t *testing.T) {
	host := otherRegistry(t)
	image, err := random.Image(100, 1)
	if err != nil {
		t.Fatal(err)
	}
	entries := make([]mutate.IndexAddendum, maxImages+1)
	for i := range entries {
		entries[i] = mutate.IndexAddendum{Add: image, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: runtime.GOARCH}}}
	}
	push(t, host+"/team/app:v1", mutate.AppendManifests(empty.Index, entries...))
	_, _, err = reading(t).image(t.Context(), host+"/team/app:v1", imagev1.TagImportPolicy{ImportMode: imagev1.ImportModePreserveOriginal}, preferredPlatform(nil))
	if err == nil || !strings.Contains(err.Error(), "has 101 images") {
		t.Errorf("import of all images: %v", err)
	}
	if _, _, err := reading(t).image(t.Context(), host+"/team/app:v1", imagev1.TagImportPolicy{}, preferredPlatform(nil)); err != nil {
		t.Errorf("import of one image: %v", err)
	}
}

func TestImportReportsMissingImage(t *testing.T) {
	from := otherRegistry(t) + "/team/app:v1"
	_, _, err := reading(t).image(t.Context(), from, imagev1.TagImportPolicy{}, preferredPlatform(nil))
	if status := outcome(err, from); status.Reason != metav1.StatusReasonNotFound || !strings.Contains(status.Message, from) {
		t.Errorf("%+v", status)
	}
}

// importOf returns an import request for the images in from.
func importOf(from ...string) *imagev1.ImageStreamImport {
	request := &imagev1.ImageStreamImport{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "app"}}
	for _, name := range from {
		request.Spec.Images = append(request.Spec.Images, imagev1.ImageImportSpec{From: corev1.ObjectReference{Kind: dockerKind, Name: name}})
	}
	return request
}

// registryWith starts a registry whose HTTP handler is handle, and returns the registry's host.
func registryWith(t *testing.T, handle http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(handle)
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}

func TestUnresponsiveRegistryTimesOut(t *testing.T) {
	host := registryWith(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	imports := &imports{fetchTimeout: 100 * time.Millisecond}
	request := importOf(host + "/team/app:v1")
	results := imports.fetch(t.Context(), reading(t), request)
	if len(results) != 1 || results[0].image != nil || results[0].tag != "v1" || !strings.Contains(results[0].status.Message, "does not respond in time") {
		t.Errorf("%+v", results)
	}
	if withHistory := request.Status.Images; len(withHistory) != 1 || withHistory[0].Status.Status != metav1.StatusFailure {
		t.Errorf("status is %+v", withHistory)
	}
}

func TestSlowRegistryDoesNotDelayOthers(t *testing.T) {
	requested := make(chan struct{})
	var once sync.Once
	slow := registryWith(t, func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-requested:
		case <-r.Context().Done():
		}
		http.NotFound(w, r)
	})
	other := registryWith(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v2/" {
			once.Do(func() { close(requested) })
		}
	})
	imports := &imports{fetchTimeout: time.Minute}
	for _, r := range imports.fetch(t.Context(), reading(t), importOf(slow+"/app:v1", other+"/app:v1")) {
		if strings.Contains(r.status.Message, "in time") {
			t.Errorf("%s: %s", r.from, r.status.Message)
		}
	}
}

func TestImportAppliesOnlyToItsStream(t *testing.T) {
	deleted := metav1.Now()
	core := fake.NewClientset(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}},
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "leaving", DeletionTimestamp: &deleted, Finalizers: []string{"example.com/last"}}}).CoreV1()
	stream := func(uid types.UID, generation int64, resourceVersion string) *imagev1.ImageStream {
		return &imagev1.ImageStream{ObjectMeta: metav1.ObjectMeta{UID: uid, Generation: generation, ResourceVersion: resourceVersion}}
	}
	for name, tt := range map[string]struct {
		namespace  string
		uid        types.UID
		generation int64
		stream     *imagev1.ImageStream
		isWantErr  func(error) bool
	}{
		"the same stream":              {"shop", "a", 2, stream("a", 2, "7"), nil},
		"with a newer status":          {"shop", "a", 2, stream("a", 2, "8"), nil},
		"with newer tags":              {"shop", "a", 2, stream("a", 3, "8"), apierrors.IsConflict},
		"another stream with the name": {"shop", "a", 2, stream("b", 2, "7"), apierrors.IsConflict},
		"gone":                         {"shop", "a", 2, nil, apierrors.IsConflict},
		"any stream":                   {"shop", "", 0, stream("b", 3, "7"), nil},
		"a new stream":                 {"shop", "", 0, nil, nil},
		"new stream, missing project":  {"none", "", 0, nil, apierrors.IsNotFound},
		"new stream, deleted project":  {"leaving", "", 0, nil, apierrors.IsForbidden},
	} {
		request := &imagev1.ImageStreamImport{ObjectMeta: metav1.ObjectMeta{Namespace: tt.namespace, Name: "app", UID: tt.uid, Generation: tt.generation}}
		err := (&imports{core: core}).checkTarget(t.Context(), request, tt.stream)
		if tt.isWantErr == nil && err != nil || tt.isWantErr != nil && !tt.isWantErr(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestNewestTagsOfRepositoryAreImported(t *testing.T) {
	tags := []string{"v1.9", "stable", "1.10.0", "latest", "v1.10.0-rc.1", "beta"}
	newestFirst(tags)
	if want := []string{"latest", "1.10.0", "v1.10.0-rc.1", "v1.9", "beta", "stable"}; !slices.Equal(tags, want) {
		t.Errorf("%v, want %v", tags, want)
	}
}

func TestImportUpdatesTagAndTagsThatTrackIt(t *testing.T) {
	item := int64(1)
	follower := imagev1.TagReference{Name: "stable", Generation: &item, From: &corev1.ObjectReference{Kind: tagKind, Name: "app:v1"}}
	pinned := imagev1.TagReference{Name: "old", Generation: &item, From: &corev1.ObjectReference{Kind: imageKind, Name: "app@" + id}}
	stream := &imagev1.ImageStream{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "app", Generation: 2}}
	stream.Spec.Tags = []imagev1.TagReference{follower, pinned}
	results := []result{
		{tag: "v1", from: "registry.example.com/app:v1", image: &imagev1.Image{ObjectMeta: metav1.ObjectMeta{Name: id}, DockerImageReference: "registry.example.com/app@" + id}},
		{tag: "v2", from: "registry.example.com/app:v2", status: metav1.Status{Reason: metav1.StatusReasonNotFound, Message: "not found"}},
	}
	point(stream, &imagev1.ImageStreamImport{}, results)
	recordResults(stream, results)
	for _, tag := range []string{"v1", "stable"} {
		if items := history(stream, tag); len(items) != 1 || items[0].Image != id || items[0].Generation != 2 {
			t.Errorf("%s is %v", tag, items)
		}
	}
	if len(history(stream, "old")) != 0 {
		t.Error("a tag that is pinned to an image is updated")
	}
	last := stream.Status.Tags[len(stream.Status.Tags)-1]
	if last.Tag != "v2" || len(last.Conditions) != 1 || last.Conditions[0].Type != imagev1.ImportSuccess || last.Conditions[0].Message != "not found" {
		t.Errorf("tag of the missing image: %+v", last)
	}
	if stream.Annotations[CheckAnnotation] == "" {
		t.Error("the annotation with the time of the import is missing")
	}
}

func TestMappingRejectsImagesOfOtherProjects(t *testing.T) {
	options := Options{Registry: "r:5000", Hosts: []string{"registry.apps.example.com"}}
	for reference, allowed := range map[string]bool{
		"r:5000/shop/app@" + id: true, "r:5000/bank/app@" + id: false, "r:5000/shop/other@" + id: false,
		"registry.apps.example.com/bank/app@" + id: false, "registry.example.com/bank/app@" + id: true,
	} {
		mapping := &imagev1.ImageStreamMapping{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "app"}, Image: imagev1.Image{DockerImageReference: reference}}
		if problems := options.checkPlace(mapping); (len(problems) == 0) != allowed {
			t.Errorf("%s: %v", reference, problems)
		}
	}
}

func TestImportRejectsOtherRegistries(t *testing.T) {
	options := Options{Registry: "docker-registry.default.svc:5000", Allowed: []AllowedRegistry{
		{Domain: "local.registry.corp:5000"}, {Domain: "*.mydomain.com", Insecure: true}, {Domain: "registry.example.com"}, {Domain: "any?.example.com:*"},
	}}
	for _, tt := range []struct {
		reference string
		insecure  bool
		allowed   bool
	}{
		{"local.registry.corp:5000/app", false, true}, {"local.registry.corp/app", false, false},
		{"a.mydomain.com/app", true, true}, {"a.mydomain.com/app", false, false}, {"a.mydomain.com:80/app", false, true},
		{"registry.example.com/app", false, true}, {"registry.example.com/app", true, false}, {"registry.example.com:443/app", true, true},
		{"any1.example.com:7/app", false, true}, {"any12.example.com:7/app", false, false},
		{"app", false, false}, {"docker-registry.default.svc:5000/shop/app", false, true},
	} {
		if reason := options.checkAllowed(tt.reference, importPorts(tt.insecure)); (reason == "") != tt.allowed {
			t.Errorf("%s, insecure %v: %q", tt.reference, tt.insecure, reason)
		}
	}
	stream := &imagev1.ImageStream{}
	stream.Spec.Tags = []imagev1.TagReference{{Name: "latest", From: &corev1.ObjectReference{Kind: dockerKind, Name: "local.registry.corp/app"}}}
	want := `spec.tags[latest].from.name: Forbidden: registry "local.registry.corp" not allowed by whitelist: ` +
		`"local.registry.corp:5000", "*.mydomain.com:80", "registry.example.com:443", "any?.example.com:*"`
	if problems := options.checkTags(stream, nil); len(problems) != 1 || problems[0].Error() != want {
		t.Errorf("%v, want %s", problems, want)
	}
	stream.Spec.DockerImageRepository = "local.registry.corp/all"
	if problems := options.checkRepository(stream, nil); len(problems) != 1 || !strings.HasPrefix(problems[0].Error(), "spec.dockerImageRepository: Forbidden") {
		t.Errorf("a repository: %v", problems)
	}
	of := func(image string, insecure bool) *imagev1.ImageStream {
		stream := &imagev1.ImageStream{}
		stream.Spec.Tags = []imagev1.TagReference{{
			Name: "latest", From: &corev1.ObjectReference{Kind: dockerKind, Name: image}, ImportPolicy: imagev1.TagImportPolicy{Insecure: insecure},
		}}
		return stream
	}
	secure, insecure := of("registry.example.com/app", false), of("registry.example.com/app", true)
	for name, tt := range map[string]struct {
		now, before *imagev1.ImageStream
		allowed     bool
	}{
		"a registry that is allowed with TLS": {secure, nil, true}, "the same registry with --insecure": {insecure, nil, true},
		"a registry that is allowed without TLS": {of("a.mydomain.com/app", false), nil, false}, "this registry with --insecure": {of("a.mydomain.com/app", true), nil, true},
		"another port with --insecure": {of("registry.example.com:80/app", true), nil, false}, "another registry with --insecure": {of("other.example.com/app", true), nil, false},
		"an image that the stream has, now with --insecure": {insecure, secure, true},
	} {
		if problems := options.checkTags(tt.now, tt.before); (len(problems) == 0) != tt.allowed {
			t.Errorf("%s: %v", name, problems)
		}
	}
	for name, existing := range map[string]*imagev1.ImageStream{"import into a new stream": nil, "import of an image that the stream has": insecure} {
		desired := &imagev1.ImageStreamImport{Spec: imagev1.ImageStreamImportSpec{Images: []imagev1.ImageImportSpec{{
			From: *insecure.Spec.Tags[0].From, ImportPolicy: insecure.Spec.Tags[0].ImportPolicy,
		}}}}
		desired.Name = "app"
		if problems := (&imports{options: options}).validate(desired, existing); (len(problems) == 0) != (existing != nil) {
			t.Errorf("%s: %v", name, problems)
		}
	}
	long := Options{Registry: options.Registry, Allowed: append(options.Allowed, AllowedRegistry{Domain: "a.example.com"}, AllowedRegistry{Domain: "b.example.com"})}
	if reason := long.checkAllowed("other.example.com/app", importPorts(false)); !strings.HasSuffix(reason, `"any?.example.com:*", and 2 more ...`) {
		t.Errorf("a long list: %s", reason)
	}
	if problems := append(options.checkTags(stream, stream), options.checkRepository(stream, stream)...); len(problems) != 0 {
		t.Errorf("previous images: %v", problems)
	}
}
