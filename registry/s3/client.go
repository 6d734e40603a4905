package s3

import (
	"context"
	"crypto/tls"
	"net/http"
	"net/url"
	"strings"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/slipway-platform/slipway/internal/version"
)

// defaultRegion is what servers other than Amazon's expect in signatures unless they are told otherwise.
const defaultRegion = "us-east-1"

// connect returns a client of the server that the settings name. It sends no request.
func (s *settings) connect() (*minio.Core, error) {
	host, secure, err := s.address()
	if err != nil {
		return nil, err
	}
	transport, err := minio.DefaultTransport(secure)
	if err != nil {
		return nil, err
	}
	if s.skipVerify && secure {
		transport.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: true}
	}
	client, err := minio.NewCore(host, &minio.Options{
		Creds: s.credentials(), Secure: secure, Region: s.signingRegion(), BucketLookup: s.lookup(), Transport: transport,
	})
	if err != nil {
		return nil, err
	}
	client.SetS3EnableDualstack(s.dualStack)
	if s.accelerate {
		client.SetS3TransferAccelerate("s3-accelerate.amazonaws.com")
	}
	if s.userAgent != "" {
		client.SetAppInfo(s.userAgent, version.Slipway())
	}
	return client, nil
}

// signingRegion is the region that signatures name.
func (s *settings) signingRegion() string {
	if s.region == "" {
		return defaultRegion
	}
	return s.region
}

// address is the host that requests go to, with its port if one is given, and whether they go there by HTTPS.
func (s *settings) address() (host string, secure bool, err error) {
	switch {
	case s.endpoint == "" && s.fips && s.dualStack:
		return "s3-fips.dualstack." + s.region + ".amazonaws.com", s.secure, nil
	case s.endpoint == "" && s.fips:
		return "s3-fips." + s.region + ".amazonaws.com", s.secure, nil
	case s.endpoint == "":
		return "s3.amazonaws.com", s.secure, nil // the client goes to the region's
	case !strings.Contains(s.endpoint, "://"):
		return s.endpoint, s.secure, nil
	}
	u, err := url.Parse(s.endpoint)
	if err != nil {
		return "", false, err
	}
	return u.Host, u.Scheme == "https", nil
}

// credentials are those of the settings, else those that Amazon's own tools use: of the environment, of a file, of the role of the
// machine or the pod.
func (s *settings) credentials() *credentials.Credentials {
	switch {
	case s.accessKey != "" && s.v4:
		return credentials.NewStaticV4(s.accessKey, s.secretKey, s.sessionToken)
	case s.accessKey != "":
		return credentials.NewStaticV2(s.accessKey, s.secretKey, s.sessionToken)
	}
	return credentials.NewChainCredentials([]credentials.Provider{
		&credentials.EnvAWS{}, &credentials.FileAWSCredentials{}, &credentials.IAM{Client: &http.Client{Transport: http.DefaultTransport}},
	})
}

// lookup says whether a URL names the bucket in its path or in its host. Without forcepathstyle it is the path for servers other than
// Amazon's, as it was in OpenShift 3.
func (s *settings) lookup() minio.BucketLookupType {
	switch {
	case s.pathStyle != nil && *s.pathStyle:
		return minio.BucketLookupPath
	case s.endpoint == "":
		return minio.BucketLookupAuto
	case s.pathStyle != nil:
		return minio.BucketLookupDNS
	}
	return minio.BucketLookupPath
}

// known reports whether the client has an endpoint for a region of Amazon. For others it would go to a default one.
func known(region string) bool {
	client, err := minio.New("s3.amazonaws.com", &minio.Options{Creds: credentials.NewStaticV4("a", "b", ""), Region: region, Secure: true})
	if err != nil {
		return false
	}
	// This sends nothing, and so there is nothing to cancel.
	signed, err := client.Presign(context.Background(), http.MethodGet, "bucket", "object", redirectPeriod, nil)
	return err == nil && strings.Contains(signed.Host, "."+region+".")
}
