// Command helm-render renders Helm charts with Helm's own packages, unpatched.
//
// It reads requests on standard input and answers each on standard output; both are JSON behind their length in four
// bytes, most significant first. It opens no file and no connection, and reads no environment of its own: whoever starts
// it gives it chart and values, limits its memory, and ends it when it takes too long. It ends with its standard input.
package main

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log"
	"log/slog"
	"os"
	"runtime/debug"
	"time"
)

// The longest request: a chart of 64 MiB in base64, and its values.
const longestRequest = 128 << 20

// How deep a template may recurse in Go's own stack before the process ends.
const deepestStack = 64 << 20

func main() {
	version := flag.Bool("version", false, "print the version of Helm and end")
	flag.Parse()
	if *version {
		fmt.Println(helmVersion())
		return
	}
	// What Helm's packages log is about charts, and is no answer.
	slog.SetDefault(slog.New(slog.DiscardHandler))
	log.SetOutput(io.Discard)
	debug.SetMaxStack(deepestStack)

	requests := make(chan []byte)
	go read(requests)
	out := bufio.NewWriter(os.Stdout)
	charts := newCharts()
	for bytes := range requests {
		if err := write(out, answer(charts, bytes)); err != nil {
			os.Exit(1)
		}
	}
}

// read ends the process with its input, also in the middle of a template that never ends.
func read(requests chan<- []byte) {
	in := bufio.NewReader(os.Stdin)
	for {
		bytes, err := frame(in)
		if err != nil {
			os.Exit(0)
		}
		requests <- bytes
	}
}

func frame(in io.Reader) ([]byte, error) {
	var length [4]byte
	if _, err := io.ReadFull(in, length[:]); err != nil {
		return nil, err
	}
	size := binary.BigEndian.Uint32(length[:])
	if size > longestRequest {
		return nil, fmt.Errorf("a request of %d bytes", size)
	}
	bytes := make([]byte, size)
	_, err := io.ReadFull(in, bytes)
	return bytes, err
}

func write(out *bufio.Writer, answer *Answer) error {
	bytes, err := json.Marshal(answer)
	if err != nil {
		bytes, err = json.Marshal(&Answer{Error: &Failure{Step: stepOutput, Message: err.Error()}})
		if err != nil {
			return err
		}
	}
	var length [4]byte
	binary.BigEndian.PutUint32(length[:], uint32(len(bytes)))
	if _, err := out.Write(length[:]); err != nil {
		return err
	}
	if _, err := out.Write(bytes); err != nil {
		return err
	}
	return out.Flush()
}

func answer(charts *Charts, bytes []byte) *Answer {
	var request Request
	if err := json.Unmarshal(bytes, &request); err != nil {
		return &Answer{Error: &Failure{Step: stepRequest, Message: err.Error()}}
	}
	if request.DeadlineMilliseconds > 0 {
		// Whoever started us kills us at the deadline; this is for the case that it is gone.
		late := time.Duration(request.DeadlineMilliseconds)*time.Millisecond + 5*time.Second
		timer := time.AfterFunc(late, func() { os.Exit(3) })
		defer timer.Stop()
	}
	return render(charts, &request)
}
