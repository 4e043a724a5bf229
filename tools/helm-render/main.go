// Command helm-render renders Helm charts with Helm's own packages, unpatched.
//
// It reads requests on standard input and answers each on standard output ([Request], [Answer]). It opens no file and no connection, and reads no environment of its own: whoever starts
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

// The longest request: a chart of 64 MiB, and its values.
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

	requests := make(chan message)
	go read(requests)
	out := bufio.NewWriter(os.Stdout)
	charts := newCharts()
	for said := range requests {
		if err := write(out, answer(charts, said)); err != nil {
			os.Exit(1)
		}
	}
}

// read ends the process with its input, also in the middle of a template that never ends.
func read(requests chan<- message) {
	in := bufio.NewReader(os.Stdin)
	for {
		said, err := frame(in)
		if err != nil {
			os.Exit(0)
		}
		requests <- said
	}
}

// message is JSON, and the texts that it gives the sizes of.
type message struct {
	head, texts []byte
}

// take gives the next text of a size.
func (m *message) take(size int) ([]byte, error) {
	if size < 0 || size > len(m.texts) {
		return nil, fmt.Errorf("a text of %d bytes is not there", size)
	}
	taken := m.texts[:size:size]
	m.texts = m.texts[size:]
	return taken, nil
}

func frame(in io.Reader) (message, error) {
	var lengths [8]byte
	if _, err := io.ReadFull(in, lengths[:]); err != nil {
		return message{}, err
	}
	head, texts := binary.BigEndian.Uint32(lengths[:4]), binary.BigEndian.Uint32(lengths[4:])
	if uint64(head)+uint64(texts) > longestRequest {
		return message{}, fmt.Errorf("a request of %d bytes", uint64(head)+uint64(texts))
	}
	bytes := make([]byte, head+texts)
	_, err := io.ReadFull(in, bytes)
	return message{bytes[:head:head], bytes[head:]}, err
}

func write(out *bufio.Writer, answer *Answer) error {
	bytes, err := json.Marshal(answer)
	if err != nil {
		answer = &Answer{Error: &Failure{Step: stepOutput, Message: err.Error()}}
		if bytes, err = json.Marshal(answer); err != nil {
			return err
		}
	}
	size := 0
	for index := range answer.Objects {
		size += len(answer.Objects[index].text)
	}
	var lengths [8]byte
	binary.BigEndian.PutUint32(lengths[:4], uint32(len(bytes)))
	binary.BigEndian.PutUint32(lengths[4:], uint32(size))
	if _, err := out.Write(lengths[:]); err != nil {
		return err
	}
	if _, err := out.Write(bytes); err != nil {
		return err
	}
	for index := range answer.Objects {
		if _, err := out.WriteString(answer.Objects[index].text); err != nil {
			return err
		}
	}
	return out.Flush()
}

func parse(said message) (*Request, error) {
	var request Request
	if err := json.Unmarshal(said.head, &request); err != nil {
		return nil, err
	}
	for index := range request.Files {
		data, err := said.take(request.Files[index].Size)
		if err != nil {
			return nil, err
		}
		request.Files[index].data = data
	}
	for index := range request.Texts {
		text, err := said.take(request.Texts[index].Size)
		if err != nil {
			return nil, err
		}
		request.Texts[index].text = string(text)
	}
	return &request, nil
}

func answer(charts *Charts, said message) *Answer {
	request, err := parse(said)
	if err != nil {
		return &Answer{Error: &Failure{Step: stepRequest, Message: err.Error()}}
	}
	if request.DeadlineMilliseconds > 0 {
		// Whoever started us kills us at the deadline; this is for the case that it is gone.
		late := time.Duration(request.DeadlineMilliseconds)*time.Millisecond + 5*time.Second
		timer := time.AfterFunc(late, func() { os.Exit(3) })
		defer timer.Stop()
	}
	if len(request.Texts) > 0 {
		return understand(request.Texts)
	}
	return render(charts, request)
}
