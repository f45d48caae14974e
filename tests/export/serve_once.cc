// Loads an export without Python and prints what one of its signatures makes of strings.
//
//   serve_once SAVED_MODEL SIGNATURE FILE...
//
// Every file is one item of the signature's only input: its bytes. Prints, for every output, one
// line with its name and its numbers.
#include <fstream>
#include <iomanip>
#include <iostream>
#include <iterator>
#include <string>
#include <vector>

#include "tensorflow/cc/saved_model/loader.h"
#include "tensorflow/core/framework/tensor.h"

int main(int count, char** arguments) {
  if (count < 4) {
    std::cerr << "usage: serve_once SAVED_MODEL SIGNATURE FILE..." << std::endl;
    return 2;
  }
  tensorflow::SavedModelBundle bundle;
  const auto loaded = tensorflow::LoadSavedModel({}, {}, arguments[1], {"serve"}, &bundle);
  if (!loaded.ok()) {
    std::cerr << loaded.ToString() << std::endl;
    return 1;
  }
  const auto& signature = bundle.GetSignatures().at(arguments[2]);
  tensorflow::Tensor items(tensorflow::DT_STRING, {count - 3});
  for (int i = 3; i < count; ++i) {
    std::ifstream file(arguments[i], std::ios::binary);
    items.flat<tensorflow::tstring>()(i - 3) =
        std::string(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  }
  std::vector<std::string> names, tensors;
  for (const auto& [name, info] : signature.outputs()) {
    names.push_back(name);
    tensors.push_back(info.name());
  }
  std::vector<tensorflow::Tensor> outputs;
  const auto run = bundle.session->Run({{signature.inputs().begin()->second.name(), items}},
                                       tensors, {}, &outputs);
  if (!run.ok()) {
    std::cerr << run.ToString() << std::endl;
    return 1;
  }
  std::cout << std::setprecision(9);
  for (size_t i = 0; i < outputs.size(); ++i) {
    std::cout << names[i];
    const auto values = outputs[i].flat<float>();
    for (int k = 0; k < values.size(); ++k) std::cout << ' ' << values(k);
    std::cout << std::endl;
  }
  return 0;
}
