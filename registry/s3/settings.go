package s3

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

const (
	// minPart and maxPart are S3's limits on the size of a part, in bytes. The last part of an
	// upload can be smaller.
	minPart = 5 << 20
	maxPart = 5 << 30

	defaultPart     = 10 << 20
	defaultCopyPart = 32 << 20
	defaultCopies   = 100
	maxCopies       = 1000
)

// noStorageClass is the setting for servers without storage classes.
const noStorageClass = "NONE"

// settings contains the values of the keys below `storage: s3:` in a registry's configuration.
//
// Source: CNCF Distribution, "S3 storage driver", which defines these keys and their defaults.
type settings struct {
	accessKey, secretKey, sessionToken    string
	bucket, region, endpoint, redirect    string
	root, storageClass, acl, userAgent    string
	keyID, logLevel                       string
	encrypt, secure, skipVerify, v4       bool
	dualStack, accelerate, fips           bool
	pathStyle                             *bool // nil if not set
	part, copyPart, copyThreshold, copies int64
}

// read returns the settings in parameters. It reports all errors together, including unknown keys.
func read(parameters map[string]any) (settings, error) {
	s := settings{
		storageClass: "STANDARD", acl: "private", secure: true, v4: true,
		part: defaultPart, copyPart: defaultCopyPart, copyThreshold: defaultCopyPart, copies: defaultCopies,
	}
	keys := s.keys()
	var problems []error
	for _, key := range slices.Sorted(maps.Keys(parameters)) {
		value := parameters[key]
		set, ok := keys[key]
		switch {
		case !ok:
			problems = append(problems, fmt.Errorf("%s is unknown; use %s", key, strings.Join(slices.Sorted(maps.Keys(keys)), ", ")))
		case value != nil:
			if err := set(fmt.Sprint(value)); err != nil {
				problems = append(problems, fmt.Errorf("%s %w", key, err))
			}
		}
	}
	return s, errors.Join(append(problems, s.check()...)...)
}

// keys maps each key to the function that sets its value.
func (s *settings) keys() map[string]func(string) error {
	return map[string]func(string) error{
		"accesskey":                   text(&s.accessKey),
		"secretkey":                   text(&s.secretKey),
		"sessiontoken":                text(&s.sessionToken),
		"bucket":                      text(&s.bucket),
		"region":                      text(&s.region),
		"regionendpoint":              text(&s.endpoint),
		"redirectendpoint":            text(&s.redirect),
		"rootdirectory":               text(&s.root),
		"useragent":                   text(&s.userAgent),
		"keyid":                       text(&s.keyID),
		"encrypt":                     boolean(&s.encrypt),
		"secure":                      boolean(&s.secure),
		"skipverify":                  boolean(&s.skipVerify),
		"v4auth":                      boolean(&s.v4),
		"usedualstack":                boolean(&s.dualStack),
		"accelerate":                  boolean(&s.accelerate),
		"usefipsendpoint":             boolean(&s.fips),
		"forcepathstyle":              func(value string) error { s.pathStyle = new(bool); return boolean(s.pathStyle)(value) },
		"chunksize":                   number(&s.part, minPart, maxPart),
		"multipartcopychunksize":      number(&s.copyPart, minPart, maxPart),
		"multipartcopythresholdsize":  number(&s.copyThreshold, 0, maxPart),
		"multipartcopymaxconcurrency": number(&s.copies, 1, maxCopies),
		"loglevel":                    choice(&s.logLevel, "off", "false"), // YAML reads `off` as false
		"objectacl": choice(&s.acl, "private", "public-read", "public-read-write", "authenticated-read", "aws-exec-read",
			"bucket-owner-read", "bucket-owner-full-control"),
		"storageclass": func(value string) error {
			return choice(&s.storageClass, noStorageClass, "STANDARD", "REDUCED_REDUNDANCY", "STANDARD_IA", "ONEZONE_IA",
				"INTELLIGENT_TIERING", "OUTPOSTS", "GLACIER_IR", "EXPRESS_ONEZONE")(strings.ToUpper(value))
		},
	}
}

// check returns errors for keys that are missing or contradict each other.
func (s *settings) check() (problems []error) {
	rejectIf := func(bad bool, text string) {
		if bad {
			problems = append(problems, errors.New(text))
		}
	}
	rejectIf(s.bucket == "", "bucket is missing")
	rejectIf(s.region == "" && s.endpoint == "", "region is missing; name the region of the bucket, such as eu-west-1, or a regionendpoint")
	rejectIf(s.region != "" && s.endpoint == "" && !isRegion(s.region), "region is unknown; correct it, or name its regionendpoint")
	rejectIf((s.accessKey == "") != (s.secretKey == ""), "accesskey and secretkey must be set together")
	rejectIf(s.sessionToken != "" && s.accessKey == "", "sessiontoken needs accesskey and secretkey")
	rejectIf(s.keyID != "" && !s.encrypt, "keyid needs encrypt: true")
	rejectIf(!s.v4 && s.endpoint == "", "v4auth: false needs a regionendpoint: Amazon S3 accepts version 4 signatures only")
	rejectIf(!s.v4 && s.accessKey == "", "v4auth: false needs accesskey and secretkey")
	rejectIf(s.endpoint != "" && (s.fips || s.accelerate || s.dualStack), "usefipsendpoint, accelerate and usedualstack select an endpoint of Amazon; remove regionendpoint")
	rejectIf(strings.Contains(s.endpoint, "://") && !bare(s.endpoint), "regionendpoint must be a URL without a path, such as https://s3.example.com")
	rejectIf(s.redirect != "" && !bare(s.redirect), "redirectendpoint must be a URL without a path, such as https://images.example.com")
	return problems
}

// bare reports whether address is an HTTP or HTTPS URL without a path or a query.
func bare(address string) bool {
	u, err := url.Parse(address)
	return err == nil && u.Host != "" && (u.Scheme == "http" || u.Scheme == "https") && strings.Trim(u.Path, "/") == "" && u.RawQuery == ""
}

func text(target *string) func(string) error {
	return func(value string) error { *target = value; return nil }
}

func boolean(target *bool) func(string) error {
	return func(value string) (err error) {
		if *target, err = strconv.ParseBool(value); err != nil {
			return fmt.Errorf("is %q; use true or false", value)
		}
		return nil
	}
}

func number(target *int64, minimum, maximum int64) func(string) error {
	return func(value string) (err error) {
		*target, err = strconv.ParseInt(value, 10, 64)
		if err != nil || *target < minimum || *target > maximum {
			return fmt.Errorf("is %q; use a number from %d to %d", value, minimum, maximum)
		}
		return nil
	}
}

func choice(target *string, choices ...string) func(string) error {
	return func(value string) error {
		if !slices.Contains(choices, value) {
			return fmt.Errorf("is %q; use one of %s", value, strings.Join(choices, ", "))
		}
		*target = value
		return nil
	}
}
