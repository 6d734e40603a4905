package image

import (
	"context"
	"fmt"
	"slices"
	"time"

	imagev1 "github.com/openshift/api/image/v1"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	coreclient "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/slipway-platform/slipway/apigroup/image/record"
	"github.com/slipway-platform/slipway/internal/registryclient"
)

// imports fetches remote images with the project's credentials, and can tag them into a stream.
type imports struct {
	view
	options Options
	core    coreclient.CoreV1Interface
	limits  limits
	// fetchTimeout is the maximum time for fetching all images of an import. An image that is not
	// fetched in time is not imported.
	fetchTimeout time.Duration
}

// fetchTimeout leaves 14 of a request's 34 seconds for storing the results.
const fetchTimeout = 20 * time.Second

// busyRetrySeconds is the number of seconds after which a client can retry an import that was
// rejected because it would have exceeded the memory limit.
const busyRetrySeconds = 2

// maxFetches is the maximum number of concurrent fetches in an import. Fetches from an unresponsive
// registry end after fetchTimeout.
const maxFetches = 5

var (
	_ rest.Creater              = &imports{}
	_ rest.SingularNameProvider = &imports{}
)

// New implements rest.Storage.
func (*imports) New() runtime.Object { return &imagev1.ImageStreamImport{} }

// GetSingularName implements rest.SingularNameProvider.
func (*imports) GetSingularName() string { return "imagestreamimport" }

// Create imports images. If an image cannot be imported, Create reports the error in the image's
// status and in a tag condition, and still imports the other images.
func (i *imports) Create(ctx context.Context, object runtime.Object, validate rest.ValidateObjectFunc, options *metav1.CreateOptions) (runtime.Object, error) {
	desired := object.(*imagev1.ImageStreamImport)
	desired.Namespace = request.NamespaceValue(ctx)
	stream, err := i.stream(ctx, desired.Name)
	// The call to validate below reports invalid names.
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsBadRequest(err) {
		return nil, err
	}
	if problems := i.validate(desired, stream); len(problems) > 0 {
		return nil, apierrors.NewInvalid(imagev1.GroupVersion.WithKind("ImageStreamImport").GroupKind(), desired.Name, problems)
	}
	if err := validate(ctx, desired); err != nil {
		return nil, err
	}
	account, err := i.options.Registries.Open(desired.Namespace)
	if err != nil {
		return nil, apierrors.NewTooManyRequests(fmt.Sprintf("import into %q: %v", desired.Name, err), busyRetrySeconds)
	}
	defer account.Close()
	fetch, err := i.fetcher(ctx, desired.Namespace, stream, account)
	if err != nil {
		return nil, err
	}
	desired.Status = imagev1.ImageStreamImportStatus{}
	results := i.fetch(ctx, fetch, desired)
	if !desired.Spec.Import {
		return hideManifests(desired), nil
	}
	if desired.Status.Import, err = i.apply(ctx, desired, results, options.DryRun); err != nil {
		return nil, err
	}
	return hideManifests(desired), nil
}

// fetcher returns a fetcher with the project's credentials. stream is nil if the stream does not
// exist. fetcher skips invalid secrets.
func (i *imports) fetcher(ctx context.Context, project string, stream *imagev1.ImageStream, account *registryclient.Account) (fetcher, error) {
	secrets, err := pullSecrets(ctx, i.core, project)
	if err != nil {
		return fetcher{}, err
	}
	keychain, _ := registryclient.KeychainOf((*corev1.SecretList)(secrets).Items)
	fetch, err := newFetcher(i.options.Registries, account, keychain, stream != nil && insecureStream(stream))
	fetch.stream = stream
	return fetch, err
}

// result holds a fetched image and the resulting change to the stream's tag.
type result struct {
	tag       string // empty if no tag changes
	from      string
	policy    imagev1.TagImportPolicy
	reference imagev1.TagReferencePolicy
	preferred platform
	image     *imagev1.Image // nil after an error
	children  []imagev1.Image
	status    metav1.Status
	// skipped means that the tag does not change because the stream has too many tags.
	skipped bool
}

// fetch fetches all requested images, and sets the import's status.
func (i *imports) fetch(ctx context.Context, fetch fetcher, desired *imagev1.ImageStreamImport) []result {
	ctx, cancel := context.WithTimeout(ctx, i.fetchTimeout)
	defer cancel()
	return append(i.fetchImages(ctx, fetch, desired), i.fetchRepository(ctx, fetch, desired)...)
}

func (i *imports) fetchImages(ctx context.Context, fetch fetcher, desired *imagev1.ImageStreamImport) (results []result) {
	for _, spec := range desired.Spec.Images {
		r := result{from: spec.From.Name, policy: spec.ImportPolicy, reference: spec.ReferencePolicy}
		if spec.To != nil {
			r.tag = spec.To.Name
		} else if parsed, err := record.ParseReference(spec.From.Name); err == nil {
			r.tag = parsed.Tag
		}
		r.preferred = preferredPlatform(specTag(fetch.stream, r.tag))
		results = append(results, r)
	}
	desired.Status.Images = fetchAll(ctx, fetch, results)
	return results
}

// fetchAll fetches the images of results concurrently, and returns a status for each image.
func fetchAll(ctx context.Context, fetch fetcher, results []result) (statuses []imagev1.ImageImportStatus) {
	var fetches errgroup.Group
	fetches.SetLimit(maxFetches)
	for n := range results {
		r := &results[n]
		fetches.Go(func() (err error) {
			r.image, r.children, err = fetch.image(ctx, r.from, r.policy, r.preferred)
			r.status = outcome(err, r.from)
			return nil
		})
	}
	_ = fetches.Wait() // the results contain the errors
	for _, r := range results {
		statuses = append(statuses, r.toStatus())
	}
	return statuses
}

func (r *result) toStatus() imagev1.ImageImportStatus {
	return imagev1.ImageImportStatus{Status: r.status, Image: r.image.DeepCopy(), Tag: r.tag, Manifests: slices.Clone(r.children)}
}

// fetchRepository imports a repository's newest tags, and lists the other tags in the status.
func (i *imports) fetchRepository(ctx context.Context, fetch fetcher, desired *imagev1.ImageStreamImport) (results []result) {
	spec := desired.Spec.Repository
	if spec == nil {
		return nil
	}
	status := &imagev1.RepositoryImportStatus{}
	desired.Status.Repository = status
	reference, err := record.ParseReference(spec.From.Name)
	var tags []string
	if err == nil {
		tags, err = fetch.session(spec.ImportPolicy.Insecure).Tags(ctx, reference.Name())
	}
	if status.Status = outcome(err, spec.From.Name); err != nil {
		return nil
	}
	newestFirst(tags)
	if maximum := i.options.MaxBulkImport; maximum > 0 && len(tags) > maximum {
		tags, status.AdditionalTags = tags[:maximum], tags[maximum:]
	}
	for _, tag := range tags {
		results = append(results, result{
			tag: tag, from: spec.From.Name + ":" + tag, policy: spec.ImportPolicy, reference: spec.ReferencePolicy,
			preferred: preferredPlatform(specTag(fetch.stream, tag)),
		})
	}
	status.Images = fetchAll(ctx, fetch, results)
	return results
}

// hideManifests removes manifests from the response, unless the client requested them.
func hideManifests(desired *imagev1.ImageStreamImport) *imagev1.ImageStreamImport {
	hide := func(statuses []imagev1.ImageImportStatus, include func(int) bool) {
		for n := range statuses {
			if include(n) {
				continue
			}
			if image := statuses[n].Image; image != nil {
				image.DockerImageManifest, image.DockerImageConfig = "", ""
			}
			for m := range statuses[n].Manifests {
				statuses[n].Manifests[m].DockerImageManifest, statuses[n].Manifests[m].DockerImageConfig = "", ""
			}
		}
	}
	hide(desired.Status.Images, func(n int) bool { return desired.Spec.Images[n].IncludeManifest })
	if repository := desired.Status.Repository; repository != nil {
		hide(repository.Images, func(int) bool { return desired.Spec.Repository.IncludeManifest })
	}
	return desired
}

// validate validates an import into a stream. stream is nil if the stream does not exist. Images
// that the stream already refers to can come from any registry, because their registries were
// checked when the images were added.
func (i *imports) validate(desired *imagev1.ImageStreamImport, stream *imagev1.ImageStream) (problems field.ErrorList) {
	for _, reason := range validStreamName(desired.Name, false) {
		problems = append(problems, field.Invalid(field.NewPath("metadata", "name"), desired.Name, reason))
	}
	spec := field.NewPath("spec")
	check := func(from *corev1.ObjectReference, insecure bool, at *field.Path) {
		if from.Kind != dockerKind {
			problems = append(problems, field.NotSupported(at.Child("kind"), from.Kind, []string{dockerKind}))
		} else if err := parse(from.Name); err != nil {
			problems = append(problems, field.Invalid(at.Child("name"), from.Name, err.Error()))
		} else if reason := i.options.checkAllowed(from.Name, importPorts(insecure)); reason != "" && !had(stream, from.Name) {
			problems = append(problems, field.Forbidden(at.Child("name"), reason))
		}
	}
	if len(desired.Spec.Images) == 0 && desired.Spec.Repository == nil {
		problems = append(problems, field.Required(spec.Child("images"), "name images or a repository"))
	}
	for n := range desired.Spec.Images {
		image, at := &desired.Spec.Images[n], spec.Child("images").Index(n)
		check(&image.From, image.ImportPolicy.Insecure, at.Child("from"))
		if image.To != nil {
			problems = append(problems, validateTagName(image.To.Name, at.Child("to", "name"))...)
		}
	}
	if repository := desired.Spec.Repository; repository != nil {
		check(&repository.From, repository.ImportPolicy.Insecure, spec.Child("repository", "from"))
		if parsed, err := record.ParseReference(repository.From.Name); err == nil && parsed.Tag+parsed.Digest != "" {
			problems = append(problems, field.Invalid(spec.Child("repository", "from", "name"), repository.From.Name,
				fmt.Sprintf("refers to one image; set only the repository %q", parsed.Name())))
		}
	}
	return problems
}
