package buildpod

import "encoding/json"

// TestResultsAnnotation is the Build annotation that contains the results of a pipeline's tests.
const TestResultsAnnotation = "pipeline.slipway.io/test-results-json"

// MaxTestResults is the maximum size of TestResultsAnnotation, in bytes.
const MaxTestResults = 32 << 10

// TestResults contains the results of the tests that a pipeline has published.
type TestResults struct {
	// Total is the number of all tests, including Failed and Skipped tests.
	Total, Failed, Skipped int
	// DurationMillis is the sum of the test durations, in milliseconds.
	DurationMillis int64
	// Failures contains the first failures. The list might be incomplete.
	Failures []TestFailure
}

// TestFailure is a failed test. Its fields are not trusted, because they come from the program
// under test.
type TestFailure struct {
	// Suite is the test's class, or the file name of a report that cannot be read.
	Suite, Name, Message string
}

// ReadTestResults returns the results in a build's annotations, or nil if the annotations contain
// no valid results. Anyone who can update the build can write these annotations.
func ReadTestResults(annotations map[string]string) *TestResults {
	var results TestResults
	if json.Unmarshal([]byte(annotations[TestResultsAnnotation]), &results) != nil {
		return nil
	}
	return &results
}
