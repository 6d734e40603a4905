package registry

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/distribution/distribution/v3/registry/api/errcode"
	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// Referrers are manifests whose subject is another manifest, such as signatures and bills of
// materials. Distribution stores them like other manifests. This package records the subjects in a
// directory in the repository.
//
// Source: OCI distribution specification 1.1, "Listing Referrers" and "Pushing Manifests with
// Subject".

// routeReferrers is the name of the route for referrers, which distribution's router does not
// define.
const routeReferrers = "referrers"

// maxReferrers is the maximum number of referrers on a page, and maxPage is the maximum total size
// of their descriptors, in bytes. A descriptor is usually a few hundred bytes, and never larger
// than a manifest. A descriptor that is larger than maxPage is on a separate page.
const maxReferrers, maxPage = 500, maxManifest

// subjectOf returns the digest of a manifest's subject, or "" if it has none.
func subjectOf(manifest []byte) digest.Digest {
	var parsed struct {
		Subject *ocispec.Descriptor `json:"subject"`
	}
	if err := json.Unmarshal(manifest, &parsed); err != nil || parsed.Subject == nil {
		return ""
	}
	return parsed.Subject.Digest
}

// referrersPath parses /v2/<repository>/referrers/<digest>.
func referrersPath(at string) (repository, subject string, ok bool) {
	rest, ok := strings.CutPrefix(at, "/v2/")
	i := strings.LastIndex(rest, "/"+routeReferrers+"/")
	if !ok || i < 0 {
		return "", "", false
	}
	if repository, subject = rest[:i], rest[i+len(routeReferrers)+2:]; strings.Contains(subject, "/") {
		return "", "", false // a repository name can also contain this text
	}
	return repository, subject, true
}

func referrerDir(repository string, subject, id digest.Digest) string {
	return path.Join(repositoriesDir, repository, referrersDir, digestPath(subject), digestPath(id))
}

// noteReferrer records that a manifest refers to another manifest. Call it before storing the
// manifest: a record whose manifest is missing is not listed, but a manifest without a record would
// never be listed.
func (s *store) noteReferrer(ctx context.Context, repository string,
	subject, id digest.Digest) error {
	if err := s.driver.PutContent(ctx, path.Join(referrerDir(repository, subject, id), linkFile), []byte(id)); err != nil {
		return fmt.Errorf("record that manifest %q refers to %q: %w", id, subject, err)
	}
	return nil
}

// remoteReferrers returns a manifest's referrers that are stored in another registry.
type remoteReferrers func(subject digest.Digest) ([]ocispec.Descriptor, error)

// serveReferrers serves a manifest's referrers as an index. The last page includes the referrers
// that more returns, unless more is nil.
func (s *store) serveReferrers(w http.ResponseWriter, r *http.Request, repository, subject string,
	more remoteReferrers) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		serveError(w, errcode.ErrorCodeUnsupported.WithMessage("referrers can only be read"))
		return
	}
	of, err := digest.Parse(subject)
	if err != nil {
		serveError(w, errcode.ErrorCodeDigestInvalid.WithDetail(err.Error()))
		return
	}
	desired := r.URL.Query().Get("artifactType")
	manifests, next, err := s.describeReferrers(r.Context(), repository, of, desired, r.URL.Query().Get("last"))
	if err != nil {
		serveError(w, errcode.ErrorCodeUnavailable.WithMessage("list referrers: the storage of the registry does not respond"))
		return
	}
	if next == "" && more != nil {
		rest, err := more(of)
		if err != nil {
			serveError(w, toResponse(err, errcode.ErrorCodeManifestUnknown))
			return
		}
		manifests = merge(manifests, rest, desired)
	}
	if desired != "" {
		w.Header().Set("OCI-Filters-Applied", "artifactType")
	}
	if next != "" {
		query := r.URL.Query()
		query.Set("last", next)
		w.Header().Set("Link", "<"+(&url.URL{Path: r.URL.Path, RawQuery: query.Encode()}).String()+`>; rel="next"`)
	}
	w.Header().Set("Content-Type", ocispec.MediaTypeImageIndex)
	_ = json.NewEncoder(w).Encode(ocispec.Index{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: ocispec.MediaTypeImageIndex, Manifests: manifests})
}

// merge appends those referrers in rest that have the desired type, or all of them if desired is
// empty. It skips duplicates.
func merge(manifests, rest []ocispec.Descriptor, desired string) []ocispec.Descriptor {
	digests := map[digest.Digest]bool{}
	for _, referrer := range manifests {
		digests[referrer.Digest] = true
	}
	for _, referrer := range rest {
		if !digests[referrer.Digest] && (desired == "" || referrer.ArtifactType == desired) {
			digests[referrer.Digest] = true
			manifests = append(manifests, referrer)
		}
	}
	return manifests
}

// describeReferrers returns the page of a manifest's referrers that starts after last. If there are
// more referrers, next is the last referrer on the page; otherwise, next is empty.
func (s *store) describeReferrers(ctx context.Context, repository string, of digest.Digest,
	desired, last string) (manifests []ocispec.Descriptor, next string, err error) {
	manifests = []ocispec.Descriptor{} // an empty list, not null
	all, err := s.referrersOf(ctx, repository, of)
	if err != nil {
		return nil, "", err
	}
	from, exact := slices.BinarySearch(all, digest.Digest(last))
	if exact {
		from++
	}
	all = all[from:]
	if len(all) > maxReferrers {
		all = all[:maxReferrers]
		next = all[maxReferrers-1].String()
	}
	size := int64(0)
	for i, id := range all {
		desc, err := s.describe(ctx, repository, id)
		if missing(err) {
			continue // the referrer was recorded, but not stored, or was deleted
		}
		if err != nil {
			return nil, "", err
		}
		if desired != "" && desc.ArtifactType != desired {
			continue
		}
		// The size of the manifest is an upper bound for the size of its descriptor.
		if size += desc.Size; size > maxPage && len(manifests) > 0 {
			return manifests, all[i-1].String(), nil
		}
		manifests = append(manifests, desc)
	}
	return manifests, next, nil
}

// referrersOf lists the digests of a manifest's referrers in sorted order.
func (s *store) referrersOf(ctx context.Context, repository string,
	subject digest.Digest) (all []digest.Digest, err error) {
	algorithms, err := s.driver.List(ctx, path.Join(repositoriesDir, repository, referrersDir, digestPath(subject)))
	if missing(err) {
		return nil, nil
	}
	for _, algorithm := range algorithms {
		notes, err := s.driver.List(ctx, algorithm)
		if err != nil && !missing(err) {
			return nil, err
		}
		for _, note := range notes {
			if id, err := digestOfPath(note); err == nil {
				all = append(all, id)
			}
		}
	}
	slices.Sort(all)
	return all, err
}

// describe returns a referrer's descriptor.
func (s *store) describe(ctx context.Context, name string,
	id digest.Digest) (ocispec.Descriptor, error) {
	mediaType, content, err := s.manifest(ctx, name, id)
	if err != nil {
		return ocispec.Descriptor{}, err
	}
	var says struct {
		ArtifactType string             `json:"artifactType"`
		Config       ocispec.Descriptor `json:"config"`
		Annotations  map[string]string  `json:"annotations"`
	}
	if err := json.NewDecoder(bytes.NewReader(content)).Decode(&says); err != nil {
		return ocispec.Descriptor{}, fmt.Errorf("read manifest %q: %w", id, err)
	}
	if says.ArtifactType == "" {
		says.ArtifactType = says.Config.MediaType
	}
	return ocispec.Descriptor{
		MediaType: mediaType, Digest: id, Size: int64(len(content)), ArtifactType: says.ArtifactType, Annotations: says.Annotations,
	}, nil
}
