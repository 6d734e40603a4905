package image

import (
	"context"
	"fmt"
	"slices"
	"time"

	imagev1 "github.com/openshift/api/image/v1"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	coreclient "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/slipway-platform/slipway/apigroup/image/record"
	"github.com/slipway-platform/slipway/internal/registryclient"
)

// imports looks at images of other registries with the project's credentials, and if asked to makes them the newest of a stream's tags.
type imports struct {
	view
	options Options
	core    coreclient.CoreV1Interface
	limits  limits
	// patience is how long images are looked for; what has not been found until then has failed.
	patience time.Duration
}

// patience leaves 14 of the 34 seconds that the API server gives a request for recording what was found, and what was not.
const patience = 20 * time.Second

// busyRetrySeconds is when a client may repeat an import that would have exceeded the budget of
// memory.
const busyRetrySeconds = 2

// maxFetches is how many images of an import are read at once: a registry that does not answer keeps the others waiting no longer than a few images.
const maxFetches = 5

var (
	_ rest.Creater              = &imports{}
	_ rest.SingularNameProvider = &imports{}
)

// New makes an empty object.
func (*imports) New() runtime.Object { return &imagev1.ImageStreamImport{} }

// GetSingularName is the name of one.
func (*imports) GetSingularName() string { return "imagestreamimport" }

// Create imports. What cannot be read is told in the status of its image, and in a condition of its tag; the others are imported all the same.
func (i *imports) Create(ctx context.Context, object runtime.Object, validate rest.ValidateObjectFunc, options *metav1.CreateOptions) (runtime.Object, error) {
	wanted := object.(*imagev1.ImageStreamImport)
	wanted.Namespace = request.NamespaceValue(ctx)
	if problems := i.validate(wanted); len(problems) > 0 {
		return nil, errors.NewInvalid(imagev1.GroupVersion.WithKind("ImageStreamImport").GroupKind(), wanted.Name, problems)
	}
	if err := validate(ctx, wanted); err != nil {
		return nil, err
	}
	account, err := i.options.Registries.Open(wanted.Namespace)
	if err != nil {
		return nil, errors.NewTooManyRequests(fmt.Sprintf("import into %q: %v", wanted.Name, err), busyRetrySeconds)
	}
	defer account.Close()
	fetch, err := i.fetcher(ctx, wanted, account)
	if err != nil {
		return nil, err
	}
	wanted.Status = imagev1.ImageStreamImportStatus{}
	results := i.fetch(ctx, fetch, wanted)
	if !wanted.Spec.Import {
		return hideManifests(wanted), nil
	}
	if wanted.Status.Import, err = i.apply(ctx, wanted, results, options.DryRun); err != nil {
		return nil, err
	}
	return hideManifests(wanted), nil
}

// fetcher has the credentials of the project. A secret that cannot be read leaves its credentials out.
func (i *imports) fetcher(ctx context.Context, wanted *imagev1.ImageStreamImport, account *registryclient.Account) (fetcher, error) {
	secrets, err := pullSecrets(ctx, i.core, wanted.Namespace)
	if err != nil {
		return fetcher{}, err
	}
	keychain, _ := registryclient.KeychainOf((*corev1.SecretList)(secrets).Items)
	stream, err := i.stream(ctx, wanted.Name)
	return newFetcher(i.options.Registries, account, keychain, err == nil && insecureStream(stream))
}

// result is an image that was looked for, and what the tag of a stream shall say about it.
type result struct {
	tag       string // empty if none is to be changed
	from      string
	policy    imagev1.TagImportPolicy
	reference imagev1.TagReferencePolicy
	image     *imagev1.Image // nil if it was not found
	children  []imagev1.Image
	status    metav1.Status
	// unpointed says that the tag is not to be pointed at the image, of which the stream has too many.
	unpointed bool
}

// fetch looks for everything that is wanted, and tells of it in the status.
func (i *imports) fetch(ctx context.Context, fetch fetcher, wanted *imagev1.ImageStreamImport) []result {
	ctx, cancel := context.WithTimeout(ctx, i.patience)
	defer cancel()
	return append(i.fetchImages(ctx, fetch, wanted), i.fetchRepository(ctx, fetch, wanted)...)
}

func (i *imports) fetchImages(ctx context.Context, fetch fetcher, wanted *imagev1.ImageStreamImport) (results []result) {
	for _, spec := range wanted.Spec.Images {
		r := result{from: spec.From.Name, policy: spec.ImportPolicy, reference: spec.ReferencePolicy}
		if spec.To != nil {
			r.tag = spec.To.Name
		} else if parsed, err := record.ParseReference(spec.From.Name); err == nil {
			r.tag = parsed.Tag
		}
		results = append(results, r)
	}
	wanted.Status.Images = fetchAll(ctx, fetch, results)
	return results
}

// fetchAll looks for the images of results, several at once, and tells how that went.
func fetchAll(ctx context.Context, fetch fetcher, results []result) (told []imagev1.ImageImportStatus) {
	var fetches errgroup.Group
	fetches.SetLimit(maxFetches)
	for n := range results {
		r := &results[n]
		fetches.Go(func() (err error) {
			r.image, r.children, err = fetch.image(ctx, r.from, r.policy)
			r.status = outcome(err, r.from)
			return nil
		})
	}
	_ = fetches.Wait() // errors are in the results
	for _, r := range results {
		told = append(told, r.tell())
	}
	return told
}

func (r *result) tell() imagev1.ImageImportStatus {
	return imagev1.ImageImportStatus{Status: r.status, Image: r.image.DeepCopy(), Tag: r.tag, Manifests: slices.Clone(r.children)}
}

// fetchRepository imports the newest tags of a repository; the others are named.
func (i *imports) fetchRepository(ctx context.Context, fetch fetcher, wanted *imagev1.ImageStreamImport) (results []result) {
	spec := wanted.Spec.Repository
	if spec == nil {
		return nil
	}
	told := &imagev1.RepositoryImportStatus{}
	wanted.Status.Repository = told
	reference, err := record.ParseReference(spec.From.Name)
	var tags []string
	if err == nil {
		tags, err = fetch.session(spec.ImportPolicy.Insecure).Tags(ctx, reference.Name())
	}
	if told.Status = outcome(err, spec.From.Name); err != nil {
		return nil
	}
	newestFirst(tags)
	if most := i.options.MaxBulkImport; most > 0 && len(tags) > most {
		tags, told.AdditionalTags = tags[:most], tags[most:]
	}
	for _, tag := range tags {
		results = append(results, result{tag: tag, from: spec.From.Name + ":" + tag, policy: spec.ImportPolicy, reference: spec.ReferencePolicy})
	}
	told.Images = fetchAll(ctx, fetch, results)
	return results
}

// hideManifests leaves out what is large, unless it was asked for.
func hideManifests(wanted *imagev1.ImageStreamImport) *imagev1.ImageStreamImport {
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
	hide(wanted.Status.Images, func(n int) bool { return wanted.Spec.Images[n].IncludeManifest })
	if told := wanted.Status.Repository; told != nil {
		hide(told.Images, func(int) bool { return wanted.Spec.Repository.IncludeManifest })
	}
	return wanted
}

func (i *imports) validate(wanted *imagev1.ImageStreamImport) (problems field.ErrorList) {
	for _, reason := range validStreamName(wanted.Name, false) {
		problems = append(problems, field.Invalid(field.NewPath("metadata", "name"), wanted.Name, reason))
	}
	spec := field.NewPath("spec")
	check := func(from *corev1.ObjectReference, insecure bool, at *field.Path) {
		if from.Kind != dockerKind {
			problems = append(problems, field.NotSupported(at.Child("kind"), from.Kind, []string{dockerKind}))
		} else if err := parse(from.Name); err != nil {
			problems = append(problems, field.Invalid(at.Child("name"), from.Name, err.Error()))
		} else if reason := i.options.checkAllowed(from.Name, insecure); reason != "" {
			problems = append(problems, field.Forbidden(at.Child("name"), reason))
		}
	}
	if len(wanted.Spec.Images) == 0 && wanted.Spec.Repository == nil {
		problems = append(problems, field.Required(spec.Child("images"), "name images or a repository"))
	}
	for n := range wanted.Spec.Images {
		image, at := &wanted.Spec.Images[n], spec.Child("images").Index(n)
		check(&image.From, image.ImportPolicy.Insecure, at.Child("from"))
		if image.To != nil {
			problems = append(problems, validateTagName(image.To.Name, at.Child("to", "name"))...)
		}
	}
	if repository := wanted.Spec.Repository; repository != nil {
		check(&repository.From, repository.ImportPolicy.Insecure, spec.Child("repository", "from"))
		if parsed, err := record.ParseReference(repository.From.Name); err == nil && parsed.Tag+parsed.Digest != "" {
			problems = append(problems, field.Invalid(spec.Child("repository", "from", "name"), repository.From.Name,
				fmt.Sprintf("is one image: name only the repository %q", parsed.Name())))
		}
	}
	return problems
}
